#!/usr/bin/env bash
# Runs the tests of deaths, of budgets and of random pipelines, which are other ones each time, again and again, until the time is over or one fails; says after each round what it took.
#
# usage: release/soak.sh [SECONDS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
until=$((SECONDS + ${1:-3600}))
tests=(--test laws --test it --test workers)
names="binary(laws) | test(/^(parts|keys|budget|crashes|ends)::/)"
round=0
while [ "$round" = 0 ] || [ "$SECONDS" -lt "$until" ]; do
    round=$((round + 1))
    cargo nextest run --locked --features formats "${tests[@]}" -E "$names"
    echo "== round $round held, after $SECONDS s"
done
