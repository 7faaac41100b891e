#!/usr/bin/env bash
# Writes the newest versions of the tests' packages, which `pyproject.toml` groups, to `python/tests/locks`. Needs `uv` on the PATH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
locks=python/tests/locks

lock() {
    uv pip compile --quiet --upgrade --universal --generate-hashes --no-annotate --no-header --output-file "$locks/$1.lock" "${@:2}"
}

lock venv --python-version 3.11 --group test --group test-large
lock alone --python-version 3.11 --no-deps --group test-large-alone --group test-grain --group test-peers --group test-plugins
# MaxText declares Python 3.12, and its input pipeline runs on 3.11.
lock maxtext --python-version 3.12 --no-deps --group test-maxtext
lock readers --python-version 3.11 --group test-readers --group test-readers-large
