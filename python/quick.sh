#!/usr/bin/env bash
# Compiles the extension into the source tree and runs pytest there: `python/quick.sh python/tests/test_record.py -k stack`. The files may also be
# named by GRISTMILL_TEST_FILES. Packages are those of GRISTMILL_TEST_ENVIRONMENT, or of target/environment, which the first run fills.
set -euo pipefail
environment=$(realpath -m "${GRISTMILL_TEST_ENVIRONMENT:-target/environment}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -e "$environment/env.sh" ] || bash python/environment.sh "$environment"
. "$environment/env.sh"
VIRTUAL_ENV=$environment/venv maturin develop --quiet --profile dev --locked --skip-install
# shellcheck disable=SC2086 # names of files without spaces
PYTHONPATH=$PWD/python pytest ${GRISTMILL_TEST_FILES:-} "$@"
