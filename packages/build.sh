#!/usr/bin/env bash
# Usage: packages/build.sh [OPTION]... OUT: builds hark's packages into the folder OUT: .deb files and a
# tar file that runs from any folder, of this machine's kind (Debian 12), and SHA256SUMS.
#
# The commit that is checked out is built, so nothing may be uncommitted. Two builds of a commit with the
# same packages installed have the same bytes, from whatever folder.
#
#   --cuda           also the CUDA library: a .deb, and the tar file has it and cuBLASLt
#   --build DIR      build folder [OUT/build]
#   --allow-changes  builds what is not committed too; the packages then name a commit that lacks it
# Further arguments after -- go to CMake: -- -DCMAKE_CUDA_ARCHITECTURES=90a-real
# Needs root or sudo for packages that are missing. docs/packages.md has more.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
cuda="" build="" changes="" out="" cmake=()
while [ $# -gt 0 ]; do
    case "$1" in
        -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;;
        --cuda) cuda=yes ;;
        --build) build="$2" && shift ;;
        --allow-changes) changes=yes ;;
        --) shift && cmake=("$@") && break ;;
        -*) echo "build.sh: no option '$1'" >&2 && exit 2 ;;
        *) out="$1" ;;
    esac
    shift
done
[ -n "$out" ] || { echo "build.sh: expected a folder for the packages; try packages/build.sh --help" >&2 && exit 2; }
mkdir -p "$out"
out="$(realpath "$out")"
build="${build:-$out/build}"
cd "$here/.."
[ -n "$changes" ] || [ -z "$(git status --porcelain)" ] || {
    echo "build.sh: there are changes that are not committed" >&2
    exit 1
}
. pipelines/packages.sh
install_packages $hark_packages git dpkg-dev file
SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)"
export SOURCE_DATE_EPOCH TZ=UTC
jobs="${HARK_JOBS:-$(nproc)}"

cmake --preset cpu -B "$build" -DHARK_PACKAGE=ON -DHARK_BUILD_TESTS=OFF -DHARK_MPI=OFF \
    -DHARK_CUDA="$([ -n "$cuda" ] && echo ON || echo OFF)" -DCMAKE_INSTALL_PREFIX=/usr "${cmake[@]}"
cmake --build "$build" -j "$jobs"
rm -rf "$out"/hark*.deb "$out"/hark-*.tar.gz "$build/cpack"
(cd "$build" && cpack -G DEB -B "$build/cpack")
cp "$build"/cpack/*.deb "$out"
HARK_JOBS="$jobs" packages/ffmpeg.sh "$build/ffmpeg"
packages/tarball.sh "$build" "$build/ffmpeg" "$out"
if [ -n "$cuda" ]; then
    packages/tarball.sh "$build" "$build/ffmpeg" "$out" "$(dirname "$(sed -n \
        's/^CUDA_cublasLt_LIBRARY:[^=]*=//p' "$build/CMakeCache.txt")")"
fi
(cd "$out" && sha256sum -- hark*.deb hark-*.tar.gz > SHA256SUMS)
