#!/usr/bin/env bash
# Compares what users can call with what they could call before: Rust's interface with the dump that is committed and, by
# cargo-semver-checks, with the last tag; the Python package's with the last tag, by griffe. What cannot be had is skipped with the reason.
#
# usage: release/api.sh [--write]
#   --write   renew the dump, `release/api.txt`; what has changed is seen in the diff of the change
#
# cargo-public-api and cargo-semver-checks: `cargo install --locked cargo-public-api cargo-semver-checks`, which takes minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
features=full
skip() { echo "release/api.sh: $1 skipped: $2" >&2; }

if ! cargo public-api --version >/dev/null 2>&1; then
    skip "the dump of the interface" "no cargo-public-api"
else
    told=$(mktemp)
    trap 'rm -f "$told"' EXIT
    # JSON is an unstable output of rustdoc. The variable permits it with the stable toolchain of the crate.
    RUSTC_BOOTSTRAP=1 cargo rustdoc --quiet --locked --target-dir target/api --features "$features" --lib -- -Zunstable-options --output-format json
    cargo public-api --rustdoc-json target/api/doc/gristmill.json --omit blanket-impls,auto-trait-impls,auto-derived-impls >"$told"
    if [ "${1:-}" = --write ]; then
        cp "$told" release/api.txt
    elif [ ! -f release/api.txt ]; then
        skip "the comparison with the dump" "none is committed yet; release/api.sh --write makes it"
    else
        diff -u release/api.txt "$told" ||
            { echo "release/api.sh: the interface is not that of release/api.txt: if that is meant, release/api.sh --write, and say so in CHANGELOG.md" >&2; exit 1; }
    fi
fi

last=$(git describe --tags --abbrev=0 2>/dev/null || true)
if [ -z "$last" ]; then
    skip "the comparison with the last release" "there is no tag yet"
    exit
fi
if cargo semver-checks --version >/dev/null 2>&1; then
    cargo semver-checks --baseline-rev "$last" --only-explicit-features --features "$features"
else
    skip "cargo-semver-checks" "it is not installed"
fi
# What the package hands out is imported `as` itself, which griffe takes for private without its extension.
if python3 -c 'import griffe, griffe_public_redundant_aliases' 2>/dev/null; then
    python3 -m griffe check gristmill --search python --extensions griffe_public_redundant_aliases --against "$last"
else
    skip "griffe" "it is not installed: pip install griffe griffe-public-redundant-aliases"
fi
