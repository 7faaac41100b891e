#!/usr/bin/env bash
# Measures gristmill beside its peers: makes their environments and the data in target/peers, and prints the table.
# `bash benches/peers.sh --help` has the options; python/docs/figures.md describes the measurement.
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/../python/benches/peers/compare.py" "$@"
