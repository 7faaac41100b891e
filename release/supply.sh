#!/usr/bin/env bash
# Checks licences, sources and versions of all dependencies by `deny.toml`: with cargo-deny where it is installed (`cargo install cargo-deny --locked`), else with
# what cargo itself tells of them, which takes no tool. Known holes are looked up where the database of advisories is there, or can be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! cargo deny --version >/dev/null 2>&1; then
    echo "release/supply.sh: no cargo-deny: licences and sources are checked by what cargo tells" >&2
    python3 release/supply.py
    exit
fi
cargo deny --all-features check --hide-inclusion-graph licenses bans sources
if cargo deny fetch db >/dev/null 2>&1; then
    cargo deny --all-features check --hide-inclusion-graph advisories
else
    echo "release/supply.sh: advisories skipped: their database cannot be had" >&2
fi
