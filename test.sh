#!/usr/bin/env bash
# Installs what the tests need and runs all of them: unit tests, integration tests, doctests, examples, the Python package.
# Needs a Rust toolchain (1.89 or newer); the Python package is tested where there is Python 3.11 or newer. Tests that use the reference data beside the repository skip, and say so,
# where it is absent; GRISTMILL_GOLDEN, GRISTMILL_FIXTURES and GRISTMILL_TOKENIZERS name other places. GRISTMILL_TEST_ONLY=rust or python leaves the other out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

only=${GRISTMILL_TEST_ONLY:-}
case $only in
    "" | rust | python) ;;
    *) echo "test.sh: GRISTMILL_TEST_ONLY is rust, python or nothing, and not '$only'" >&2; exit 2 ;;
esac

if ! command -v cargo >/dev/null; then
    echo "test.sh: no cargo on the PATH; install Rust 1.89 or newer first" >&2
    exit 2
fi

# Real PJRT plugins, two versions of XLA's for the CPU: without them their tests skip, and say so.
if [ -z "${GRISTMILL_PJRT_PLUGIN:-}" ]; then
    plugins=$(mktemp -d)
    trap 'rm -r "$plugins"' EXIT
    if python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$plugins" \
        lammps-jax-pjrt-cpu==0.11.2 xla-cpu-pjrt==0.0.1; then
        GRISTMILL_PJRT_PLUGIN=$plugins/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so
        export GRISTMILL_PJRT_PLUGIN+=:$plugins/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so
    else
        echo "test.sh: tests of real PJRT plugins skipped: pip cannot have their wheels" >&2
    fi
fi

# What the formats' own packages read of what is written here: without them those tests skip, and say so.
if [ -z "${GRISTMILL_PYTHON:-}" ] && [ "$only" != python ]; then
    readers=$(mktemp -d)
    trap 'rm -r "$readers" ${plugins:+"$plugins"}' EXIT
    if python3 -m venv "$readers" &&
        "$readers/bin/pip" install --quiet --disable-pip-version-check array_record lz4 numpy safetensors zstandard; then
        export GRISTMILL_PYTHON=$readers/bin/python
    else
        echo "test.sh: tests of other readers skipped: pip cannot have their packages" >&2
    fi
    # TensorFlow is large: its test runs where GRISTMILL_TEST_LARGE asks for it.
    if [ -n "${GRISTMILL_TEST_LARGE:-}" ] &&
        ! "$readers/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir tensorflow-cpu; then
        echo "test.sh: TensorFlow's test skipped: pip cannot have it" >&2
    fi
fi

# All features but `python`, whose tests are in Python: linking it into Rust's would ask for Python's own library.
[ "$only" = python ] || cargo test --features full --locked "$@"
[ "$only" = rust ] || bash python/test.sh
