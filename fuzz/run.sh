#!/bin/sh
# fuzz/run.sh TARGET [SECONDS [SEED …]]: libFuzzer with coverage on the stable compiler, from the folder of this file.
# Targets are the folders of `corpus`. The address sanitiser, which needs nightly, is left out: no parser has `unsafe` (UNSAFE.md).
set -eu
cd "$(dirname "$0")"
target=$1
seconds=${2:-60}
shift; [ $# -gt 0 ] && shift
[ -d "corpus/$target" ] || { echo "no target $target: there is no folder fuzz/corpus/$target" >&2; exit 2; }
# What is found goes to a folder that is not kept; it begins with the inputs that are, which the tests run, too.
mkdir -p "found/$target" "artifacts/$target"
for seed in "$@"; do cp "$seed" "found/$target/"; done
host=$(rustc -vV | sed -n 's/^host: //p')
FUZZ_TARGET=$target RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1" \
    cargo run --release --features libfuzzer --target "$host" --bin target -- \
    -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -artifact_prefix="artifacts/$target/" "found/$target" "corpus/$target"
