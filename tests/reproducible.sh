#!/usr/bin/env bash
# Usage: tests/reproducible.sh [FIRST]: builds the packages of the commit that is checked out twice, in two folders
# of different names and without ccache, and compares the files, byte for byte. FIRST, the folder of another build
# of this commit (packages/build.sh), takes the place of one of them. Without the CUDA library.
# Needs root. Not part of tests/run.sh: it takes many minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
work="$(mktemp -d "${TMPDIR:-/var/tmp}/hark-reproducible.XXXXXX")"
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
# build FOLDER: in a clone there.
build() {
    git clone -q . "$work/$1/source"
    (cd "$work/$1/source" && packages/build.sh --build "$work/$1/b" "$work/$1/out")
}
first="${1:-$work/one/out}"
[ $# -gt 0 ] || build one
build "another place"
count=0
for file in "$work/another place/out"/*.{deb,tar.gz}; do
    cmp "$file" "$first/${file##*/}" || { echo "reproducible.sh: ${file##*/}: two builds differ" >&2 && exit 1; }
    count=$((count + 1))
done
[ "$count" -ge 4 ] || { echo "reproducible.sh: only $count packages were built" >&2 && exit 1; }
echo "reproducible.sh: $count files are the same"
