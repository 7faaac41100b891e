#!/usr/bin/env bash
# Installs the packages of all tests into FOLDER: `python/environment.sh FOLDER`. FOLDER/env.sh then exports what the tests read. Versions are those
# of `python/tests/locks`; GRISTMILL_TEST_NEWEST takes the newest versions instead. GRISTMILL_TEST_LARGE adds PyTorch, trainers and TensorFlow, of
# about 7 GB. A package that cannot be installed is an error.
set -euo pipefail

[ $# = 1 ] || { echo "usage: python/environment.sh FOLDER" >&2; exit 2; }
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "python/environment.sh: skipped: no python3 of version 3.11 or newer on the PATH" >&2
    exit 0
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."

large=${GRISTMILL_TEST_LARGE:+yes}
# What the folder is filled from. A folder that is filled from it already is left as it is.
origin=$(echo "$large ${GRISTMILL_TEST_NEWEST:+newest}" "$(python3 --version)" | cat - pyproject.toml python/environment.sh python/tests/locks/*.lock | sha256sum)
[ "$(tail -1 "$folder/env.sh" 2>/dev/null)" != "# $origin" ] || exit 0
rm -rf "${folder:?}"/{env.sh,venv,grain,maxtext,plugins,readers,peers}

if ! python3 -m venv "$folder/venv"; then
    echo "python/environment.sh: python3 cannot make a virtual environment; Debian has that in the package python3-venv" >&2
    exit 1
fi
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9
export PATH="$folder/venv/bin:$PATH" VIRTUAL_ENV="$folder/venv"

# Installs groups of `pyproject.toml` by the versions of a lock: `install LOCK GROUP... [-- OPTION...]`.
install() {
    local options=()
    [ -n "${GRISTMILL_TEST_NEWEST:-}" ] || options+=(--constraints "python/tests/locks/$1.lock")
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options+=(--group "$1")
        shift
    done
    uv pip install --quiet "${options[@]}" "${@:2}"
}

install venv test ${large:+test-large}
# MaxText declares Python 3.12, and its input pipeline runs on 3.11.
install maxtext test-maxtext -- --no-deps --python-version 3.12 --target "$folder/maxtext"
install alone test-grain -- --no-deps --target "$folder/grain"
install alone test-plugins -- --no-deps --target "$folder/plugins"
uv venv --quiet "$folder/readers"
install readers test-readers ${large:+test-readers-large} -- --python "$folder/readers"
if [ -n "$large" ]; then
    install alone test-large-alone -- --no-deps
    install alone test-peers -- --no-deps --target "$folder/peers"
fi

plugins=$folder/plugins/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so
plugins+=:$folder/plugins/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so
{
    # uv installs no bytecode: without a place for it each interpreter of the tests would compile its imports.
    echo 'unset PYTHONDONTWRITEBYTECODE'
    printf 'export PATH=%q:$PATH\n' "$folder/venv/bin"
    printf 'export %s=%q\n' GRAIN_WHEEL "$folder/grain" MAXTEXT_WHEEL "$folder/maxtext" GRISTMILL_PJRT_PLUGIN "$plugins" \
        GRISTMILL_PYTHON "$folder/readers/bin/python" ${large:+GRISTMILL_PEERS "$folder/peers"}
    echo "# $origin"
} >"$folder/env.sh"
