#!/usr/bin/env bash
# Makes what a release is made of, and checks it: the source distribution, and wheels for Linux (x86-64, Arm), macOS (Arm) and Windows.
# Nothing is published.
#
# usage: release/build.sh [--out FOLDER] [TARGET…]
#   --out FOLDER   where it goes: target/release-files by default
#   TARGET         sdist, x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu, aarch64-apple-darwin, x86_64-pc-windows-gnu: all of them by default,
#                  and on macOS the last but one alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=target/release-files
if [ "${1:-}" = --out ]; then
    out=$2
    shift 2
fi
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    case $(uname) in
        Darwin) targets=(aarch64-apple-darwin) ;;
        *) targets=(sdist x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu aarch64-apple-darwin x86_64-pc-windows-gnu) ;;
    esac
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
export CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/wheels}

tools=$(mktemp -d)
trap 'rm -r "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check 'maturin[zig]>=1.9,<2' abi3audit auditwheel
PATH=$tools/bin:$PATH

fail() {
    echo "release/build.sh: $*" >&2
    exit 1
}

# Makes the wheel of a target. Its instructions are those of x86-64-v2, which every machine has that trains; what is faster beyond is found
# when it runs.
wheel() {
    local target=$1
    local arguments=(--profile dist --locked --strip --zig --target "$target" --out "$out")
    rustup target add "$target" >/dev/null 2>&1 || { echo "$target: rustup cannot have its standard library" >&2; return 1; }
    unset RUSTFLAGS RUSTC_WRAPPER
    case $target in
        x86_64-*) export RUSTFLAGS="-C target-cpu=x86-64-v2" ;;
    esac
    case $target@$(uname) in
        *-linux-*) arguments+=(--compatibility manylinux_2_17) ;;
        *-windows-gnu@*) export RUSTC_WRAPPER=$PWD/release/zig/rustc ;;
        *-apple-darwin@Darwin) ;;
        # Apple's libraries are named only: what is called of them is found when Python loads the module.
        *-apple-darwin@*) arguments+=(-- -L "framework=$PWD/release/zig/apple" -L "native=$PWD/release/zig/apple") ;;
    esac
    maturin build "${arguments[@]}"
}

# Checks what can be seen without running it: size, the list of what is in it, the C library and the interface of Python that it needs.
look() {
    local wheel=$1 size
    size=$(wc -c <"$wheel")
    echo "$(basename "$wheel"): $((size / 1000000)) MB"
    [ "$size" -le 60000000 ] || fail "$wheel is larger than 60 MB"
    python3 -m zipfile -l "$wheel" | grep -q 'sboms/.*\.json' || fail "$wheel says nothing of what is in it (sboms/)"
    abi3audit --strict "$wheel"
    case $wheel in
        *manylinux*) auditwheel show "$wheel" | tee "$tools/show" && grep -q manylinux_2_17 "$tools/show" ;;
    esac
}

# Installs the wheel in an empty environment of each Python that is here, and does what a stranger does first.
try() {
    local wheel=$1 python all tried=0
    # Those that pyenv has answer only where they are asked for.
    all=$(pyenv versions --bare 2>/dev/null | paste -sd: || true)
    for python in python3.11 python3.12 python3.13 python3.14 python3.15; do
        PYENV_VERSION=$all "$python" -c '' 2>/dev/null || continue
        rm -rf "$tools/try"
        PYENV_VERSION=$all "$python" -m venv "$tools/try"
        "$tools/try/bin/pip" install --quiet --disable-pip-version-check "$wheel"
        (cd "$tools" && env -i HOME="$tools" PATH="$tools/try/bin" "$tools/try/bin/python" "$OLDPWD/release/first_lines.py")
        (cd "$tools" && env -i HOME="$tools" PATH="$tools/try/bin:/usr/bin:/bin" gristmill demo --mb 2 --json) | grep -q '"order_hash"'
        echo "$python: installed, and used"
        tried=$((tried + 1))
    done
    [ "$tried" -gt 0 ] || fail "no Python to try $wheel with"
}

for target in "${targets[@]}"; do
    rm -f "$tools"/made
    case $target in
        sdist) maturin sdist --out "$out" && ls -l "$out"/*.tar.gz ;;
        *)
            touch "$tools/made"
            wheel "$target" || fail "no wheel for $target"
            made=$(find "$out" -name '*.whl' -newer "$tools/made" | head -1)
            look "$made"
            [ "$target" != "$(rustc -vV | sed -n 's/^host: //p')" ] || try "$made"
            ;;
    esac
done
