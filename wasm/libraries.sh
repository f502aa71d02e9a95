#!/usr/bin/env bash
# Usage: wasm/libraries.sh FOLDER: compiles the libraries that hark links for WebAssembly, from Debian's
# source packages, with em++: FOLDER/include and FOLDER/lib. Does nothing if they are there. apt must know
# where the sources of trixie and bookworm are (deb-src). Headers of Boost and of nlohmann-json are the system's.
set -euo pipefail
case "${1:-}" in
    -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;;
    "" | -*) echo "libraries.sh: expected a folder; try wasm/libraries.sh --help" >&2 && exit 2 ;;
esac
folder="$(realpath -m -- "$1")"
[ ! -e "$folder/made" ] || exit 0
rm -rf "$folder"
mkdir -p "$folder"/{include,lib,sources}
cd "$folder/sources"
apt-get source --quiet=2 --download-only --tar-only boost1.83/trixie pcre2/bookworm utf8proc/bookworm zlib/bookworm
for archive in pcre2 utf8proc zlib; do
    mkdir $archive
    tar -xf ${archive}_*.tar.* -C $archive --strip-components=1
done
tar -xf boost*.tar.* --wildcards '*/libs/program_options/src/*.cpp' --strip-components=4
flags=(-w -O3 -msimd128 -fwasm-exceptions)

# library NAME FLAGS... -- SOURCES...: lib/libNAME.a
library() {
    local name="$1" objects own=()
    shift
    while [ "$1" != -- ]; do own+=("$1") && shift; done
    shift
    objects="$(mktemp -d --tmpdir="$folder")"
    for source; do
        em++ -x "$([[ $source == *.cpp ]] && echo c++ || echo c)" "${flags[@]}" "${own[@]}" -c "$source" \
            -o "$objects/$(basename "$source").o"
    done
    emar rcs "$folder/lib/lib$name.a" "$objects"/*.o
    rm -r "$objects"
}

library z -Izlib -- zlib/{adler32,compress,crc32,deflate,inffast,inflate,inftrees,trees,uncompr,zutil}.c
cp -a zlib/{zlib,zconf}.h "$folder/include"

library utf8proc -DUTF8PROC_STATIC -- utf8proc/utf8proc.c
cp -a utf8proc/utf8proc.h "$folder/include"

# As its NON-AUTOTOOLS-BUILD says.
(cd pcre2/src && cp config.h.generic config.h && cp -a pcre2.h.generic pcre2.h &&
    cp pcre2_chartables.c.dist pcre2_chartables.c)
library pcre2-8 -Ipcre2/src -DHAVE_CONFIG_H -DPCRE2_CODE_UNIT_WIDTH=8 -DPCRE2_STATIC -DSUPPORT_UNICODE -- \
    pcre2/src/pcre2_{auto_possess,chartables,compile,config,context,convert,dfa_match,error,extuni}.c \
    pcre2/src/pcre2_{find_bracket,jit_compile,maketables,match,match_data,newline,ord2utf}.c \
    pcre2/src/pcre2_{pattern_info,script_run,serialize,string_utils,study,substitute,substring}.c \
    pcre2/src/pcre2_{tables,ucd,valid_utf,xclass}.c
cp -a pcre2/src/pcre2.h "$folder/include"

ln -sfn /usr/include/boost /usr/include/nlohmann "$folder/include"
library boost_program_options -std=c++17 -I"$folder/include" -- *.cpp
rm -r "$folder/sources"
touch "$folder/made"
