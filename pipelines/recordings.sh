# Sourced by transcribe.sh and batch.sh: where the tools are and whether they take what they are
# given, which recordings there are, and what their transcripts are called. They set `script`, the
# name that messages begin with.
# shellcheck shell=bash disable=SC2154

# use_tools: the tools on the PATH are taken, or those of this source tree's build/bin.
use_tools() {
    PATH="$PATH:$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/bin"
    command -v whisper-transcribe > /dev/null && return
    echo "$script: whisper-transcribe is not built: run pipelines/demo.sh first" >&2
    return 1
}

# check_transcriber SAMPLES OPTION...: that much silence goes through the pipeline, so that a wrong
# flag, model or language ends a run before its first recording, not once for each. One sample asks
# for no window, so nothing is computed. Sets `mels` to what the model takes, or says what is wrong
# and returns whisper-transcribe's status.
check_transcriber() {
    local bytes=$(($1 * 2)) said status
    shift
    for mels in 80 128; do
        said="$(head -c "$bytes" /dev/zero | mel --raw s16le --mels "$mels" 2> /dev/null |
            whisper-transcribe "$@" 2>&1 > /dev/null)"
        status=$?
        [ "$status" -ne 0 ] || return 0
        [[ "$said" == *"use mel --mels 128"* ]] || break
    done
    echo "$said" >&2
    return "$status"
}

# find_recordings FOLDER: the paths of those in it and in its folders, each with a NUL behind it. The
# folder may be a link.
find_recordings() {
    find -H "$1" -type f ! -path '*/.hark*/*' -regextype posix-extended -iregex \
        '.*\.(wav|mp3|m4a|mp4|m4v|mov|mkv|webm|ogg|oga|opus|flac|aac|aif|aiff|wma|avi|3gp)' \
        -print0 | sort -z
}

# name_transcripts PATH...: sets stems[PATH], to which transcripts add .srt or .txt: the path
# without its ending or, where that is not its own (a.mp3 beside a.wav), as it is.
declare -A stems=()
name_transcripts() {
    local path stem
    local -A users=() whole=()
    for path in "$@"; do
        stem="$path"
        [[ "${path##*/}" != ?*.* ]] || stem="${path%.*}"
        stems[$path]="$stem"
        whole[$path]=1
        users[$stem]=$((${users[$stem]:-0} + 1))
    done
    for path in "$@"; do
        stem="${stems[$path]}"
        [ "$stem" != "$path" ] || continue
        [ "${users[$stem]}" -eq 1 ] && [ -z "${whole[$stem]:-}" ] || stems[$path]="$path"
    done
}
