#!/usr/bin/env bash
# Checks that the library compiles for systems that the tests do not run on: alone, with every feature, and with each by itself.
#
# usage: release/platforms.sh [--each] [TARGET…]
#   --each   every feature by itself, too
#
# A target whose standard library rustup cannot bring is skipped with the reason, and so is what has C in it where pip cannot bring a
# compiler for it. Nothing is linked or run: what "checked" in the table of platforms means is this.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

each=false
if [ "${1:-}" = --each ]; then
    each=true
    shift
fi
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(aarch64-unknown-linux-gnu aarch64-apple-darwin x86_64-pc-windows-gnu)
# All but `python`, whose wheels `release/build.sh` makes.
all=full
# Those of Cargo.toml, without names for several, what is of no use by itself, and `cli`, which is checked with all.
read -ra features <<<"$(sed -n '/^\[features\]/,/^\[dependencies\]/s/^\([a-z0-9_-]*\) = .*/\1/p' Cargo.toml |
    grep -vxE 'default|full|formats|stores|store|columns|cli|python' | tr '\n' ' ')"
export RUSTFLAGS="-D warnings" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/platforms}

tools=$(mktemp -d)
trap 'rm -r "$tools"' EXIT
has_c=false
if python3 -m venv "$tools/venv" && "$tools/venv/bin/pip" install --quiet --disable-pip-version-check ziglang; then
    has_c=true
    export ZIG_PYTHON=$tools/venv/bin/python
else
    echo "release/platforms.sh: features with C in them are skipped: pip cannot have ziglang" >&2
fi

check() {
    echo "$target: ${1:-the library alone}"
    cargo check --quiet --locked --lib --no-default-features --features "$1" --target "$target"
}

for target in "${targets[@]}"; do
    if ! rustup target add "$target" >/dev/null 2>&1; then
        echo "$target: skipped: rustup cannot have its standard library" >&2
        continue
    fi
    check ""
    $has_c || continue
    for tool in cc ar; do
        ln -sf "$PWD/release/zig/cross" "$tools/$tool-$target"
    done
    export "CC_${target//-/_}=$tools/cc-$target" "AR_${target//-/_}=$tools/ar-$target"
    check "$all"
    if $each; then
        for feature in "${features[@]}"; do
            check "$feature"
        done
    fi
done
