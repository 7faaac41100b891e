#!/usr/bin/env bash
# Builds the wheel of the tests into a folder: `python/wheel.sh FOLDER`. GRISTMILL_TEST_PROFILE names the profile, which is dev: that optimises
# dependencies only. GRISTMILL_TEST_ENVIRONMENT is a folder of python/environment.sh with maturin, which is on the PATH otherwise.
set -euo pipefail
[ -z "${GRISTMILL_TEST_ENVIRONMENT:-}" ] || . "$GRISTMILL_TEST_ENVIRONMENT/env.sh"
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
maturin build --profile "${GRISTMILL_TEST_PROFILE:-dev}" --locked --quiet --out "$folder"
