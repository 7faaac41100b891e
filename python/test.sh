#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh virtual environment, and runs the tests of the package there.
# Where there is no Python 3.11 or newer it says so and does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "python/test.sh: skipped: no python3 of version 3.11 or newer on the PATH" >&2
    exit 0
fi

folder=$(mktemp -d)
ended() {
    # What compiles still, where an installation failed, writes there.
    [ -z "${wheel:-}" ] || { kill "$wheel" 2>/dev/null && wait "$wheel"; } || true
    rm -r "$folder"
}
trap ended EXIT
python3 -m venv "$folder/venv"
export PATH="$folder/venv/bin:$PATH"
pip install --quiet --disable-pip-version-check \
    'maturin>=1.9,<2' jax mkdocs-material 'mkdocstrings[python]' 'moto[server]' mypy numpy orbax-checkpoint pyarrow 'pytest>=8' pyright ruff

# Unoptimised but for its dependencies: the tests need no more, and an optimised build takes minutes. The packages below come meanwhile.
maturin build --profile dev --locked --quiet --out "$folder/wheels" &
wheel=$!

# Readers and writers of formats, without which some tests skip.
pip install --quiet --disable-pip-version-check bagz safetensors ||
    echo "python/test.sh: tests beside bagz and safetensors skipped: their wheels cannot be had" >&2

# Readers of others, for what we write.
if ! pip install --quiet --disable-pip-version-check array_record datasets tfrecord webdataset pillow; then
    echo "python/test.sh: tests with other readers of records skipped: their wheels cannot be had" >&2
fi
# PyTorch's wheel brings gigabytes: its tests, and those of readers that need it, run where GRISTMILL_TEST_LARGE asks for them,
# and say that they skip elsewhere.
if [ -n "${GRISTMILL_TEST_LARGE:-}" ]; then
    if ! pip install --quiet --disable-pip-version-check --no-cache-dir torch torchdata; then
        echo "python/test.sh: PyTorch's tests skipped: its wheel cannot be had, or the disk is full: $(df -h --output=avail "$folder" | tail -1) left" >&2
        # Half a package is found by who imports it, and is an error there; pip leaves it where the disk fills up.
        rm -rf "$folder"/venv/lib/python3*/site-packages/{nvidia*,torch*,triton*}
    # Without the clients of stores and the tools that they ask for, and tests use none of.
    elif ! pip install --quiet --disable-pip-version-check --no-deps mosaicml-streaming==0.13.0 megatron-core==0.16.1 ||
        ! pip install --quiet --disable-pip-version-check --no-cache-dir brotli catalogue pillow python-snappy torchvision \
            transformers xxhash zstd; then
        echo "python/test.sh: tests beside streaming and Megatron skipped: their packages cannot be had" >&2
    fi
fi

# A peer whose programs the pages on coming from others show, in a folder of its own: it asks for clients of stores that tests have no use for.
if [ -n "${GRISTMILL_TEST_LARGE:-}" ]; then
    if pip install --quiet --disable-pip-version-check --no-deps --target "$folder/peers" lightning-utilities litdata obstore tifffile; then
        export GRISTMILL_PEERS="$folder/peers"
    else
        echo "python/test.sh: programs of LitData skipped: its wheels cannot be had" >&2
    fi
fi

# Trainers of others, of some sixty megabytes: PyTorch, transformers and most of what they ask for are there from above, and what their
# loops do not import is left out.
if [ -n "${GRISTMILL_TEST_LARGE:-}" ]; then
    pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps accelerate docstring-parser h5py keras lightning lightning-utilities \
        namex optree spmd-types tensorboard torchmetrics torchtitan==0.3.0 tyro &&
        pip install --quiet --disable-pip-version-check absl-py ml-dtypes psutil pyyaml rich tqdm ||
        echo "python/test.sh: tests of trainers skipped: their wheels cannot be had" >&2
fi

# What metrics are handed to: the page shows how, and a tool that is not installed has its test skipped.
pip install --quiet --disable-pip-version-check opentelemetry-sdk ||
    echo "python/test.sh: OpenTelemetry's tests skipped: its wheel cannot be had" >&2

# Widgets of notebooks, which need none to be made.
pip install --quiet --disable-pip-version-check anywidget ||
    echo "python/test.sh: tests of notebooks skipped: anywidget's wheel cannot be had" >&2

# The parser of Prometheus, which reads what the endpoint answers.
pip install --quiet --disable-pip-version-check prometheus-client ||
    echo "python/test.sh: the test with Prometheus's parser skipped: its wheel cannot be had" >&2

# Ray, for actors on this machine.
pip install --quiet --disable-pip-version-check ray==2.60.0 ||
    echo "python/test.sh: Ray's tests skipped: its wheel cannot be had" >&2

# XLA's plugin for the CPU, through which JAX goes as it does to a TPU or GPU. `test.sh` has it already.
if [ -z "${GRISTMILL_PJRT_PLUGIN:-}" ] &&
    ! pip install --quiet --disable-pip-version-check --no-deps lammps-jax-pjrt-cpu==0.11.2; then
    echo "python/test.sh: JAX's tests with a plugin skipped: its wheel cannot be had" >&2
fi

# Grain itself, to be held against our module of its name: in a folder of its own, where nothing finds it by accident.
if pip install --quiet --disable-pip-version-check --no-deps --target "$folder/grain" grain==0.2.18; then
    export GRAIN_WHEEL="$folder/grain"
    pip install --quiet --disable-pip-version-check absl-py array_record attrs cloudpickle etils parameterized portpicker \
        prometheus_client protobuf pyarrow
    # A large trainer's input pipeline as it is: what it imports besides is stubbed.
    if pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python --target "$folder/maxtext" maxtext==0.2.5; then
        export MAXTEXT_WHEEL="$folder/maxtext"
    else
        echo "python/test.sh: MaxText's pipeline skipped: its wheel cannot be had" >&2
    fi
fi

wait "$wheel"
wheel=
pip install --quiet --disable-pip-version-check "$folder"/wheels/gristmill-*.whl

# What failed is said once more after all that ends later than the tests, where a reader of the end of a long log looks first.
if ! pytest -rs 2>&1 | tee "$folder/pytest.log"; then
    printf '\n== what failed\n'
    grep -E '^(E  |FAILED|ERROR|_{3,} .* _{3,}$|[^ ]+\.py:[0-9]+: )' "$folder/pytest.log" | cut -c1-300 | tail -60
    exit 1
fi

# Its own tests, out of its wheel.
if [ -n "${GRAIN_WHEEL:-}" ]; then
    python python/oracle/run.py "$GRAIN_WHEEL"
else
    echo "python/test.sh: Grain's own tests skipped: its wheel cannot be had" >&2
fi

mypy
# The extension is what its stub says. Without PyTorch the package cannot hand out its module of that name, which is an error of the package.
allowed=python/stubtest.txt
if ! python -c 'import torch' 2>/dev/null; then
    allowed=$folder/stubtest.txt
    cat python/stubtest.txt - <<<'gristmill' >"$allowed"
fi
stubtest gristmill --mypy-config-file pyproject.toml --allowlist "$allowed" --ignore-unused-allowlist
NO_MKDOCS_2_WARNING=1 mkdocs build --quiet --strict --config-file python/mkdocs.yml
# It is a program for Node, and would download one; and what derives from PyTorch's classes has no types without them.
if ! command -v node >/dev/null; then
    echo "python/test.sh: pyright skipped: no node on the PATH" >&2
elif ! python -c 'import sys; from importlib.util import find_spec; sys.exit(not all(map(find_spec, sys.argv[1:])))' \
    lightning torch torchtitan transformers; then
    echo "python/test.sh: pyright skipped: no PyTorch, or no trainers that are built on it" >&2
else
    pyright
fi
