#!/usr/bin/env bash
# Builds the wheel, installs it into an environment of its own, and runs the tests of the package there. Tests with Ray and Grain's own tests run
# meanwhile, which sleep most of the time, and types and the site are checked. Results are in target/pytest*.xml. Arguments are pytest's, and
# leave out all but the tests.
#   GRISTMILL_TEST_LARGE=1             adds the tests beside packages of several gigabytes, such as PyTorch
#   GRISTMILL_TEST_ENVIRONMENT=FOLDER  uses the packages that `python/environment.sh FOLDER` has installed
#   GRISTMILL_TEST_NEWEST=1            installs the newest versions of all packages
#   GRISTMILL_TEST_WHEELS=FOLDER       tests the wheel that `python/wheel.sh FOLDER` has built
#   GRISTMILL_TEST_PROFILE=release     tests an optimised wheel
#   GRISTMILL_TEST_JOBS=N              runs N tests at a time; one more than there are cores otherwise
#   GRISTMILL_TEST_MARK=live|weekly    runs the tests with this mark alone, one after the other
#   GRISTMILL_FLAKES=FILE              lists tests that were run again
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "python/test.sh: skipped: no python3 of version 3.11 or newer on the PATH" >&2
    exit 0
fi

folder=$(mktemp -d)
checks=()
ended() {
    # A failure leaves the checks running.
    [ ${#checks[@]} = 0 ] || { kill "${checks[@]}" 2>/dev/null && wait "${checks[@]}"; } || true
    rm -r "$folder"
}
trap ended EXIT
step() {
    printf '\n== python: %s (%s s)\n' "$1" "$SECONDS"
}

if [ -z "${GRISTMILL_TEST_ENVIRONMENT:-}" ] || [ -n "${GRISTMILL_TEST_NEWEST:-}" ]; then
    step "packages"
    export GRISTMILL_TEST_ENVIRONMENT=$folder/environment
    bash python/environment.sh "$GRISTMILL_TEST_ENVIRONMENT"
fi
# shellcheck disable=SC1091
. "$GRISTMILL_TEST_ENVIRONMENT/env.sh"
wheels=${GRISTMILL_TEST_WHEELS:-}
if [ -z "$wheels" ]; then
    step "the wheel"
    wheels=$folder/wheels
    bash python/wheel.sh "$wheels"
fi
uv pip install --quiet --python "$GRISTMILL_TEST_ENVIRONMENT/venv" --reinstall --no-deps "$wheels"/gristmill-*.whl

failed=()
# Runs pytest and writes its results to a file of target.
tests() {
    local results=target/$1.xml status=0
    shift
    pytest "$@" --junitxml "$results" 2>&1 | tee -a "$folder/pytest.log" || status=${PIPESTATUS[0]}
    # 5: no test has the marks.
    [ "$status" = 0 ] || [ "$status" = 5 ] || failed+=("pytest, with the results $results")
}
jobs=${GRISTMILL_TEST_JOBS:-$(($(nproc) + 1))}
together() {
    local marks=$1
    step "tests with the marks: $marks; $jobs at a time"
    # A process that dies ends the run: pytest-xdist does not go on with groups of tests in another.
    tests pytest -n "$jobs" --dist loadgroup --max-worker-restart 0 -m "$marks" --durations 30 "${@:2}"
}
# A test that measures is run again, twice at most, if it fails.
one_by_one() {
    step "tests with the marks: $1"
    tests "$2" -m "$1" --reruns 2 --durations 10 "${@:3}"
}

# Checks that need only the installed wheel. They run beside the tests.
check() {
    local name=$1 status=0
    shift
    "$@" >"$folder/$name.log" 2>&1 || status=$?
    echo "$status" >"$folder/$name.status"
}
# The extension is what its stub says. Without PyTorch the package cannot hand out its module of that name, which is an error of the package.
stub_is_true() {
    local allowed=python/stubtest.txt
    if [ -z "${GRISTMILL_TEST_LARGE:-}" ]; then
        allowed=$folder/stubtest.txt
        cat python/stubtest.txt - <<<'gristmill' >"$allowed"
    fi
    stubtest gristmill --mypy-config-file pyproject.toml --allowlist "$allowed" --ignore-unused-allowlist
}
# It is a program for Node, and would download one; and what derives from PyTorch's classes has no types without them.
pyright_passes() {
    if [ -z "${GRISTMILL_TEST_LARGE:-}" ]; then
        echo "skipped: no PyTorch, and no trainers that are built on it"
    elif ! command -v node >/dev/null; then
        echo "no node on the PATH"
        return 1
    else
        pyright
    fi
}
# Four of them, which make thousands of passes or wait for 30 s, take more than half of the time: they are run on an optimised wheel, weekly.
grains_own_tests() {
    local rest=()
    [ "${GRISTMILL_TEST_PROFILE:-dev}" != dev ] || rest=(-k "not no_mem_leak and not test_prefetch_but_no_read2")
    python python/oracle/run.py "$GRAIN_WHEEL" -- -n 2 --timeout 600 --timeout-method thread "${rest[@]}"
}
# The longest test, which mostly waits for clusters to start.
ray_passes() {
    pytest -m "ray and not live and not weekly" --junitxml target/pytest-ray.xml
}
begin_checks() {
    check ray ray_passes &
    checks+=($!)
    check grain grains_own_tests &
    checks+=($!)
    {
        check mypy mypy
        check stubtest stub_is_true
        check mkdocs env NO_MKDOCS_2_WARNING=1 mkdocs build --quiet --strict --config-file python/mkdocs.yml --site-dir "$folder/site"
        check pyright pyright_passes
    } &
    checks+=($!)
}
end_checks() {
    local name status
    step "Ray, Grain's own tests, types and the site"
    wait "${checks[@]}"
    checks=()
    for name in ray grain mypy stubtest mkdocs pyright; do
        status=$(cat "$folder/$name.status")
        printf -- '-- %s: exit status %s\n' "$name" "$status"
        cat "$folder/$name.log"
        [ "$status" = 0 ] || failed+=("$name")
    done
}

mkdir -p target
rm -f target/pytest*.xml
if [ -n "${GRISTMILL_TEST_MARK:-}" ]; then
    one_by_one "$GRISTMILL_TEST_MARK" "pytest-$GRISTMILL_TEST_MARK" "$@"
elif [ $# -gt 0 ]; then
    together "not alone and not live and not weekly" "$@"
    one_by_one "alone and not live and not weekly" pytest-alone "$@"
else
    begin_checks
    together "not ray and not alone and not live and not weekly"
    end_checks
    one_by_one "alone and not live and not weekly" pytest-alone
fi

if [ ${#failed[@]} -gt 0 ]; then
    step "what failed"
    grep -hE '^(E  |FAILED|ERROR|_{3,} .* _{3,}$|[^ ]+\.py:[0-9]+: )' "$folder/pytest.log" "$folder/ray.log" "$folder/grain.log" 2>/dev/null | cut -c1-300 | tail -60 || true
    printf 'failed: %s\n' "${failed[@]}"
    exit 1
fi
step "done"
