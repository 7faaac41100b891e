#!/usr/bin/env bash
# Installs what the tests need and runs all of them: unit tests, integration tests, doctests, examples, the Python package.
# Needs a Rust toolchain (1.89 or newer); the Python package is tested where there is Python 3.11 or newer. Tests that use the reference data beside the repository skip, and say so,
# where it is absent; GRISTMILL_GOLDEN, GRISTMILL_FIXTURES and GRISTMILL_TOKENIZERS name other places.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if ! command -v cargo >/dev/null; then
    echo "test.sh: no cargo on the PATH; install Rust 1.89 or newer first" >&2
    exit 2
fi

# All features but `python`, whose tests are in Python: linking it into Rust's would ask for Python's own library.
cargo test --features parquet --locked "$@"
bash python/test.sh
