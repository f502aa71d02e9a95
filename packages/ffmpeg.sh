#!/usr/bin/env bash
# ffmpeg.sh DIR: builds FFmpeg's libraries from Debian's source of the version that hark is built with, into DIR,
# with the demuxers and decoders of libs/audio/libav/libav_allowed.cc and nothing else: small, without the libraries that
# Debian's load, and under the LGPL. What exists already is kept. Needs root or sudo for missing packages, and a
# source list of Debian, from which the source is fetched.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
mkdir -p "$1"
dir="$(realpath "$1")"
. "$here/../pipelines/packages.sh"
install_packages dpkg-dev make gcc nasm zlib1g-dev libavformat-dev
version="$(dpkg-query -W -f '${source:Version}\n' libavformat-dev | head -n 1)"
origin="$(printf 'ffmpeg\t%s\tffmpeg %s' "$version" "$version")"
allowed="$(cksum < "$here/../libs/audio/libav/libav_allowed.cc") $(cksum < "$0")"
if [ "$(cat "$dir/made" 2> /dev/null)" = "$origin $allowed" ]; then
    exit
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# The machine's own package sources, as sources of sources.
mkdir -p "$work"/{lists/partial,parts,source}
for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.*; do
    [ -e "$file" ] || continue
    case "$file" in
        *.sources) sed 's/^Types:.*/Types: deb-src/' "$file" > "$work/parts/debian.sources" ;;
        *) sed -n 's/^deb /deb-src /p' "$file" > "$work/parts/debian.list" ;;
    esac
done
cat > "$work/apt.conf" << END
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$work/parts";
Dir::State::Lists "$work/lists";
APT::Sandbox::User "root";
END
export APT_CONFIG="$work/apt.conf"
apt-get update -qq
(cd "$work/source" && apt-get source -qq "ffmpeg=$version" > /dev/null)
unset APT_CONFIG

# names VARIABLE: the words of a list in libav_allowed.cc, as configure calls them.
names() {
    sed -n "/$1 =/,/;/p" "$here/../libs/audio/libav/libav_allowed.cc" | grep -o '"[^"]*"' | tr -d '"\n' |
        tr , '\n' | sed -e "$2" | sort -u | paste -sd ,
}
formats="$(names kAllowedFormats \
    's/^alaw$/pcm_alaw/; s/^mulaw$/pcm_mulaw/; s/^mpeg$/mpegps/; s/^mp4$/mov/; s/^webm$/matroska/')"
codecs="$(names kAllowedCodecs 's/^real_144$/ra_144/; s/^real_288$/ra_288/; /^lib/d')"
cd "$work"/source/ffmpeg-*/
# configure's options are in the libraries, so they name no folder of this machine.
./configure --prefix=/ffmpeg --libdir=/ffmpeg/lib --enable-shared --disable-static --disable-everything \
    --disable-autodetect --enable-zlib --disable-network --disable-programs --disable-doc --disable-debug \
    --disable-avdevice --disable-avfilter --disable-swscale --disable-postproc --enable-parsers \
    --enable-demuxer="$formats" --enable-decoder="$codecs" > "$work/configure.log" || {
    tail -n 20 "$work/configure.log" >&2
    exit 1
}
grep -v '^License' "$work/configure.log" | grep -i 'did not match' >&2 && exit 1
make -j "${HARK_JOBS:-$(nproc)}" > "$work/make.log" 2>&1 || { tail -n 20 "$work/make.log" >&2 && exit 1; }
make install DESTDIR="$work/install" > "$work/make.log" 2>&1
rm -rf "$dir/lib" "$dir/licences"
mkdir -p "$dir/licences"
cp -a "$work/install/ffmpeg/lib" "$dir"
cp COPYING.LGPLv2.1 LICENSE.md "$dir/licences"
printf '%s\n' "$origin" > "$dir/lib/ORIGIN"
{
    echo "FFmpeg's libraries, built from Debian's source package ffmpeg $version, unchanged, by"
    echo "packages/ffmpeg.sh of hark. Licence: LGPL 2.1 or later."
    echo "Demuxers: $formats"
    echo "Decoders: $codecs"
} > "$dir/licences/README"
echo "$origin $allowed" > "$dir/made"
