#!/usr/bin/env bash
# Usage: tests/aarch64.sh [OUT]: builds hark for arm64 on amd64, in a system of Debian 12 with a cross compiler,
# runs the quick tests by qemu, makes the tar file of packages/tarball.sh in OUT (/var/tmp/hark-aarch64), and
# transcribes a sample with it in a bare arm64 system. qemu shows wrong instructions and addresses, no speeds
# and no faults of memory order. Needs root, a kernel with binfmt_misc, and some GB for OUT.
# Not part of tests/run.sh: it takes an hour on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
tree="$PWD"
mkdir -p "${1:-/var/tmp/hark-aarch64}"
out="$(realpath "${1:-/var/tmp/hark-aarch64}")"
. pipelines/packages.sh
. tests/roots/make.sh
install_packages qemu-user-static arch-test

# The kernel runs arm64 programs by qemu, in chroots too, as long as this script runs.
kernel=/proc/sys/fs/binfmt_misc
[ -e "$kernel/register" ] || mount -t binfmt_misc binfmt_misc "$kernel"
if [ ! -e "$kernel/qemu-aarch64" ]; then
    begin='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    printf '%s' ":qemu-aarch64:M::$begin:$mask:/usr/bin/qemu-aarch64-static:FC" > "$kernel/register"
    trap 'echo -1 > "$kernel/qemu-aarch64"' EXIT
fi

libraries=()
for package in $hark_packages libgtest-dev; do
    case "$package" in
        nlohmann-json3-dev) libraries+=("$package") ;;
        lib*-dev | libboost* | zlib1g-dev | libedit-dev) libraries+=("$package:arm64") ;;
    esac
done
ARCHITECTURES="amd64 arm64" make_root "$out/cross" bookworm minbase \
    g++-aarch64-linux-gnu cmake ninja-build pkg-config ca-certificates git curl jq file patchelf binutils \
    dpkg-dev make gcc nasm ccache procps libgomp1:arm64 "${libraries[@]}"
ARCHITECTURES=arm64 make_root "$out/bare" bookworm apt
cache="${CCACHE_DIR:-$HOME/.cache/ccache}"
mkdir -p "$cache"
tests/roots/run.sh "$out/cross" "$tree" "$out" "$cache" -- env CCACHE_DIR="$cache" HARK_JOBS="${HARK_JOBS:-$(nproc)}" \
    "$tree/tests/packages/aarch64.sh" "$tree" "$out"
unshare --net tests/roots/run.sh "$out/bare" "$tree" "$out" -- "$tree/tests/packages/tarball.sh" "$tree" "$out"/*.tar.gz
echo "aarch64.sh: all is well"
