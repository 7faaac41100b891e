#!/usr/bin/env bash
# Runs tests of the modules with `unsafe` (UNSAFE.md) where mistakes show that a plain run hides. Both need the nightly toolchain, and say so where it is not there.
#
# usage: release/unsafe.sh miri|address
#   miri      Rust's own rules, by an interpreter: what needs no system calls
#   address   memory that is read or written where it must not be, by AddressSanitizer: mappings, shared memory, leases
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
skip() {
    echo "release/unsafe.sh: $1 skipped: $2" >&2
    exit 0
}
cargo +nightly --version >/dev/null 2>&1 || skip "${1:-}" "no nightly toolchain"

case ${1:-} in
    miri)
        rustup component add --toolchain nightly miri rust-src >/dev/null 2>&1 || skip miri "rustup cannot have its component"
        # Clocks and folders are the machine's.
        MIRIFLAGS="-Zmiri-disable-isolation" CARGO_TARGET_DIR=target/miri \
            cargo +nightly miri test --locked --no-default-features --features workers --lib -- \
            element::buffer element::array element::spare wire::region
        ;;
    address)
        host=$(rustc -vV | sed -n 's/^host: //p')
        # A process that ends by a signal, or is forked, leaves what it had; and what asks for more than there is gets an error, which tests look at.
        ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR=target/address \
            cargo +nightly test --locked --no-default-features --features workers --target "$host" --lib -- \
            workers::slab mmap wire:: element:: pack::
        ;;
    *)
        sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
