#!/usr/bin/env bash
# tarball.sh BUILD FFMPEG OUT [CUDA_LIBRARIES]: makes the relocatable tar file OUT/hark-VERSION-linux-PROCESSOR.tar.gz
# of a build with HARK_PACKAGE: tools, demo models, documents, and the libraries that they load, with their licences.
# FFMPEG is the folder of ffmpeg.sh. With CUDA_LIBRARIES, the folder of libcublasLt, the CUDA library is in it too, and
# the name has the version of CUDA. It needs the system's glibc 2.35 and GCC 12's libstdc++, or newer ones.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
build="$(realpath "$1")" ffmpeg="$(realpath "$2")" out="$3" cuda="${4:-}"
: "${SOURCE_DATE_EPOCH:?is not set; run packages/build.sh}"
export LC_ALL=C
. "$here/../pipelines/packages.sh"
install_packages patchelf jq binutils
mkdir -p "$out"

# value NAME: of CMake's cache.
value() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }
version="$(value CMAKE_PROJECT_VERSION)"
commit="$(sed -n 's/.*kCommit = "\(.*\)".*/\1/p' "$build/libs/core/cli/commit.h")"
processor="$(sed -n 's/set(CMAKE_SYSTEM_PROCESSOR "\(.*\)")/\1/p' "$build"/CMakeFiles/*/CMakeSystem.cmake)"
strip="$(value CMAKE_STRIP)"
name="hark-$version-linux-$processor"
components=(tools models doc)
folders=(-L "$ffmpeg/lib")
needs="a glibc of 2.35 or newer and a libstdc++ of GCC 12 or newer: Ubuntu 22.04, Debian 12 and later"
if [ -n "$cuda" ]; then
    components+=(cuda)
    folders+=(-L "$cuda")
    cuda_version="$(value HARK_CUDA_VERSION)"
    mapfile -t cuda_licence < <(find -L "${cuda%/lib*}" -maxdepth 4 \
        \( -name EULA.txt -o -path '*cublas*' -name License.txt \))
    [ ${#cuda_licence[@]} -gt 0 ] || { echo "tarball.sh: ${cuda%/lib*}: has no licence of CUDA" >&2 && exit 1; }
    name+="-cuda$cuda_version"
    needs+=". A GPU needs NVIDIA's driver $(value HARK_CUDA_DRIVER) or newer (CUDA $cuda_version);"
    needs+=" without one the tools use the CPU"
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
root="$work/$name"

for component in "${components[@]}"; do
    cmake --install "$build" --prefix "$root" --component "$component" > /dev/null
done
# Units of systemd have the prefix in them.
rm -rf "$root/lib/systemd"
mv "$root"/lib/*-linux-gnu/hark/* "$root/lib"
rmdir "$root"/lib/*-linux-gnu/hark "$root"/lib/*-linux-gnu
mkdir -p "$root/lib" "$root/share/doc/hark/licences"

# Those of glibc, and of the compiler that glibc's machine has, are the system's.
system='^(ld-linux-.*|lib(c|m|mvec|pthread|dl|rt|resolv|util|anl|stdc\+\+|gcc_s|cuda))\.so'
programs=("$root"/bin/* "$root"/lib/libhark-av.so)
[ -z "$cuda" ] || programs+=("$root"/lib/libhark-cuda.so)
"$here/libraries.sh" "${folders[@]}" "${programs[@]}" > "$work/libraries"
while IFS=$'\t' read -r library path package _; do
    [[ ! "$library" =~ $system ]] || continue
    cp -L "$path" "$root/lib/$library"
    chmod 644 "$root/lib/$library"
    licence="$root/share/doc/hark/licences/${package/#-/NVIDIA}"
    case "$path" in
        "$ffmpeg"/*) mkdir -p "$licence" && cp "$ffmpeg"/licences/* "$licence" ;;
        "${cuda:-/no/cuda}"/*) mkdir -p "$licence" && cp "${cuda_licence[0]}" "$licence" ;;
        *) mkdir -p "$licence" && cp -L "/usr/share/doc/$package/copyright" "$licence" ;;
    esac
done < "$work/libraries"
# The programs' own search path holds for the libraries that libraries load, if it is of the old kind.
for file in "$root"/bin/* "$root"/lib/*.so*; do
    case "$file" in
        */libcublasLt*) continue ;; # NVIDIA's file as it is
        "$root"/bin/*) rpath='$ORIGIN/../lib' ;;
        *) rpath='$ORIGIN' ;;
    esac
    "$strip" --strip-unneeded "$file"
    patchelf --force-rpath --set-rpath "$rpath" "$file"
done
"$here/needs.sh" "$root"/bin/* "$root"/lib/*.so*
"$here/sbom.sh" "$name" "$version" "$commit" "${folders[@]}" "${programs[@]}" > "$root/share/doc/hark/sbom.spdx.json"
cat > "$root/README" << END
hark $version, commit $commit, for Linux on $processor.

It runs from any folder: put its bin/ on the PATH, or run bin/hark. It needs
$needs.
bin/hark doctor checks the machine. share/doc/hark has the documents, the
licences of the libraries in lib/, and sbom.spdx.json, which lists them.
hark lambda run --package takes this tar file to a rented machine.
END
fmt -w 78 -s "$root/README" > "$work/readme" && cat "$work/readme" > "$root/README"
find "$root" -type d -exec chmod 755 {} +
tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
    --mode=go+rX,go-w -cf - "$name" | gzip -9n > "$out/$name.tar.gz.part"
mv "$out/$name.tar.gz.part" "$out/$name.tar.gz"
echo "$out/$name.tar.gz"
