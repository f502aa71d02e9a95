# Sourced by the scripts that show the comment at their own top as their help.
# shellcheck shell=bash

# Messages on stderr begin with the name in `script`.
say() {
    printable "$*"
    echo "$script: $shown" >&2
}
die() { say "$@"; exit 1; }
wrong() { say "$*; try $script --help"; exit 2; }

# counted N NOUN: "1 shard", "2 shards".
counted() { echo "$1 $2$([ "$1" = 1 ] || echo s)"; }

# make_folder FOLDER: with those above it; says why it cannot.
make_folder() {
    local why
    why="$(LC_ALL=C mkdir -p -- "$1" 2>&1)" && return
    say "$1: cannot make this folder: ${why##*: }"
    return 1
}

# refuse_offline WHAT: ends the command if HARK_OFFLINE is set: not empty, not 0.
refuse_offline() {
    [[ "${HARK_OFFLINE:-0}" = 0 ]] ||
        die "$1: not asked, because HARK_OFFLINE is set; unset it to use the network"
}

# printable TEXT: sets `shown` to it with control bytes escaped, 2,000 characters at most.
printable() {
    local byte hex code
    shown="$1"
    [ ${#shown} -le 2000 ] || shown="${shown:0:2000}..."
    [[ "$shown" == *[[:cntrl:]]* ]] || return 0
    for code in {1..31} 127; do
        printf -v hex '%02x' "$code"
        printf -v byte "\\x$hex"
        shown="${shown//"$byte"/\\x$hex}"
    done
}

# help_if_asked ARGUMENT...: answers the first argument and ends the script, if it asks for the help
# or the version.
help_if_asked() {
    case "${1:-}" in
        --help | --help-all | -h) show_help ;;
        --version) show_version ;;
    esac
}

show_help() {
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 0
}

# show_version: "hark plot run (hark) 0.1.0", and the lines of hark --version. A script that is no
# command of hark has no version.
show_version() {
    local name version
    name="$(sed -n '2s/^# Usage: \(hark\( [a-z][a-z]*\)*\) .*/\1/p' "$0")"
    [ -n "$name" ] || return 0
    find_tools
    version="$(whisper-transcribe --version)" || exit 1
    echo "$name ${version#whisper-transcribe }"
    exit 0
}

# find_tools: adds those of this installation or source tree to the end of the PATH.
find_tools() {
    local root
    root="$(cd "$(dirname "$0")/.." && pwd)"
    PATH="$PATH:$root/build/bin:${root%/*}/bin"
}
