#!/usr/bin/env bash
# Tries wheels where nothing else is: in the newest Pythons that Debian has, in a folder with them and the C library alone. What a stranger does
# first is done there: install, first lines, demo, whose batches must be the same everywhere. A wheel for Arm runs in an emulator of the processor.
#
# usage: release/empty.sh [--suite SUITE] WHEEL…
#   --suite SUITE   Debian's: sid by default, which has the newest Pythons
#
# Wants root, debootstrap, and for Arm qemu-user-static. Nothing outside a temporary folder is touched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suite=sid
if [ "${1:-}" = --suite ]; then
    suite=$2
    shift 2
fi
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2; }

folder=$(mktemp -d)
mounted=()
ended() {
    for place in "${mounted[@]}"; do
        umount "$place" || true
    done
    rm -r --one-file-system "$folder"
}
trap ended EXIT

fail() {
    echo "release/empty.sh: $*" >&2
    exit 1
}

# Asks for Debian's Pythons of a processor, from the oldest that the wheel promises.
offered() {
    curl --fail --silent --show-error "http://deb.debian.org/debian/dists/$suite/main/binary-$1/Packages.xz" | xz -d |
        sed -n 's/^Package: \(python3\.[0-9]*\)-venv$/\1/p' | sort -V | awk -F. '$2 >= 11'
}

# Unpacks Debian for a processor with its Pythons. Nothing is configured: a foreign processor's scripts could not run.
unpack() {
    local processor=$1 root=$2 include
    include=$(offered "$processor" | sed 's/$/-venv/' | paste -sd,)
    debootstrap --foreign --arch="$processor" --variant=minbase --include="ca-certificates,$include" "$suite" "$root" >"$folder/log" ||
        { cat "$folder/log" >&2; fail "no Debian $suite for $processor"; }
    for package in "$root"/var/cache/apt/archives/*.deb; do
        dpkg -x "$package" "$root"
    done
    # Where certificates are, and from where pip may take packages, is this machine's affair.
    mkdir -p "$root/etc/ssl/certs"
    cp /etc/resolv.conf "$root/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
}

# The Pythons that were unpacked.
unpacked() {
    basename -a "$1"/usr/bin/python3.??
}

# Passes on what is printed, and keeps the hash of the demo's batches in place of its figures.
watched() {
    sed 's/.*"order_hash":"\([0-9a-f]*\)".*/demo: order hash \1/' | tee "$folder/told"
    grep '^demo: order hash' "$folder/told" >>"$folder/hashes"
}

# Installs in an environment of its own, inside.
try_here() {
    local wheel=$1 root=$folder/amd64 python
    if [ ! -e "$root" ]; then
        unpack amd64 "$root"
        for place in proc dev; do
            mount --bind "/$place" "$root/$place"
            mounted=("$root/$place" "${mounted[@]}")
        done
    fi
    cp "$wheel" release/first_lines.py "$root/tmp"
    for python in $(unpacked "$root"); do
        chroot "$root" /usr/bin/env -i HOME=/tmp PATH=/usr/bin:/bin LANG=C.UTF-8 bash -euc '
            rm -rf /tmp/empty && mkdir /tmp/empty && cd /tmp/empty
            "$2" -m venv venv
            venv/bin/pip install --quiet --disable-pip-version-check "/tmp/$1"
            venv/bin/python /tmp/first_lines.py
            venv/bin/gristmill demo --mb 2 --json
        ' - "$(basename "$wheel")" "$python" | watched
        echo "$(basename "$wheel"): installed, and used by $python of Debian $suite"
    done
}

# Installs from outside, and runs in the emulator, on threads: pip and worker processes are programs that are started, which only a kernel that
# knows the emulator could do.
try_emulated() {
    local wheel=$1 root=$folder/arm64 pip site python inside
    [ -e "$root" ] || unpack arm64 "$root"
    # An older pip does not know the newest Python.
    pip=$(echo "$root"/usr/share/python-wheels/pip-*.whl)
    for python in $(unpacked "$root"); do
        site=$folder/$python
        rm -rf "$site" && mkdir "$site"
        python3 "$pip/pip" install --quiet --disable-pip-version-check --root-user-action ignore --target "$site" --only-binary=:all: \
            --python-version "${python#python}" --platform manylinux_2_17_aarch64 --platform manylinux_2_27_aarch64 \
            --platform manylinux_2_28_aarch64 "$wheel"
        inside=(env -i HOME="$site" PYTHONPATH="$site" qemu-aarch64-static -L "$root" "$root/usr/bin/$python")
        (cd "$site" && "${inside[@]}" "$OLDPWD/release/first_lines.py")
        (cd "$site" && "${inside[@]}" bin/gristmill demo --mb 2 --threads 2 --json) | watched
        echo "$(basename "$wheel"): installed, and used by $python of Debian $suite in an emulator"
    done
}

for wheel; do
    case $wheel in
        *manylinux*_x86_64*.whl) try_here "$wheel" ;;
        *manylinux*_aarch64*.whl) try_emulated "$wheel" ;;
        *) fail "$wheel: neither a wheel for x86-64 Linux nor for Arm Linux" ;;
    esac
done
[ "$(sort -u "$folder/hashes" | wc -l)" = 1 ] || fail "the demo's batches are not the same everywhere"
