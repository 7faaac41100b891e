#!/usr/bin/env bash
# The public API of the crate beside that of the last release, by cargo-semver-checks, and beside the committed dump, by
# cargo-public-api. What cannot run says "skipped" and why.
#   release/api.sh         checks
#   release/api.sh write   writes the dump anew: release/public-api.txt, whose change is then seen in a review
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1
mode=${1:-check}
if [ "$mode" != check ] && [ "$mode" != write ]; then
    echo "release/api.sh: takes nothing or \`write\`, not $mode" >&2
    exit 2
fi
# All that users have; the extension module has no Rust API.
features=cli,formats,image,pjrt,riegeli,stores,workers
dump=release/public-api.txt

semver() {
    local last
    if ! cargo semver-checks --version >/dev/null 2>&1; then
        echo "skipped: no cargo-semver-checks"
        return
    fi
    last=$(git tag --list 'v[0-9]*' --sort=-version:refname 2>/dev/null | head -1)
    if [ -z "$last" ]; then
        echo "skipped: cargo-semver-checks: no tag of a release to compare with"
        return
    fi
    cargo semver-checks check-release --baseline-rev "$last" --only-explicit-features --features "$features"
}

public() {
    local found
    if ! cargo public-api --version >/dev/null 2>&1; then
        echo "skipped: no cargo-public-api"
        return
    fi
    if ! cargo +nightly --version >/dev/null 2>&1; then
        echo "skipped: cargo-public-api: no nightly toolchain, whose rustdoc it reads"
        return
    fi
    if [ "$mode" = check ] && [ ! -e "$dump" ]; then
        echo "skipped: cargo-public-api: no $dump; \`bash release/api.sh write\` makes it"
        return
    fi
    found=$(mktemp)
    cargo +nightly public-api --simplified --no-default-features --features "$features" >"$found"
    if [ "$mode" = write ]; then
        mv "$found" "$dump"
        chmod 644 "$dump"
        echo "written: $dump"
    elif ! diff -u "$dump" "$found"; then
        rm "$found"
        echo "release/api.sh: the public API is not that of $dump; where that is meant, \`bash release/api.sh write\`" >&2
        exit 1
    else
        rm "$found"
        echo "the public API is that of $dump"
    fi
}

[ "$mode" = write ] || semver
public
