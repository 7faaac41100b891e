#!/usr/bin/env bash
# Installs what the tests need and runs all of them: unit tests, integration tests, doctests, examples, the Python package.
#
# Needs rustup or the Rust toolchain of `rust-toolchain.toml`, a C compiler and a linker. The Python package is tested if there is a
# python3 of version 3.11 or newer with `venv`. Tests of reference data beside the repository skip, with a message, if it is absent;
# GRISTMILL_GOLDEN, GRISTMILL_FIXTURES and GRISTMILL_TOKENIZERS name other places.
#   GRISTMILL_TEST_ONLY=rust|python    runs one half
#   GRISTMILL_TEST_LARGE=1             adds the tests beside packages of several gigabytes, such as PyTorch
#   GRISTMILL_TEST_ENVIRONMENT=FOLDER  uses the packages that `python/environment.sh FOLDER` has installed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

only=${GRISTMILL_TEST_ONLY:-}
case $only in
    "" | rust | python) ;;
    *) echo "test.sh: GRISTMILL_TEST_ONLY is rust, python or nothing, and not '$only'" >&2; exit 2 ;;
esac
if ! command -v cargo >/dev/null; then
    echo "test.sh: no cargo on the PATH; install Rust by rustup first" >&2
    exit 2
fi

if [ -z "${GRISTMILL_TEST_ENVIRONMENT:-}" ]; then
    GRISTMILL_TEST_ENVIRONMENT=$(mktemp -d)
    export GRISTMILL_TEST_ENVIRONMENT
    trap 'rm -rf "$GRISTMILL_TEST_ENVIRONMENT"' EXIT
    bash python/environment.sh "$GRISTMILL_TEST_ENVIRONMENT"
fi
# Readers of other libraries, and plugins of XLA for the CPU. Their tests skip without them.
[ ! -e "$GRISTMILL_TEST_ENVIRONMENT/env.sh" ] || . "$GRISTMILL_TEST_ENVIRONMENT/env.sh"

# All features but `python`, whose tests are written in Python: Rust's test programs would link against Python's library.
if [ "$only" != python ]; then
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --features full --locked "$@"
    else
        echo "test.sh: no cargo-nextest, which runs tests side by side: they run one after the other" >&2
        cargo test --features full --locked --lib --bins --tests --examples "$@" -- --test-threads=1
    fi
    cargo test --features full --locked --doc
fi
[ "$only" = rust ] || bash python/test.sh
