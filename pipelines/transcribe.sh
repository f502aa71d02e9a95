#!/usr/bin/env bash
# A folder of recordings in, a .srt and a .txt beside each out.
#
#   usage: pipelines/transcribe.sh FOLDER [WHISPER-TRANSCRIBE OPTION]...
#          pipelines/transcribe.sh ~/lectures --model ~/models/whisper-small --language en
#
# Recordings that differ in their ending alone (a.mp3, a.wav) keep it: a.mp3.srt, a.wav.srt. One
# that has both files already is skipped, so a run that was stopped goes on where it was. Those that
# failed are listed at the end, and the exit status is then 1. The tools on the PATH are taken, or
# those of this source tree's build/bin.
#
#   each recording -> audio-decode -> mel -> whisper-transcribe -> NAME.srt, NAME.txt
set -uo pipefail
[ $# -ge 1 ] && [ "${1#-}" = "$1" ] || {
    echo "usage: $0 FOLDER [WHISPER-TRANSCRIBE OPTION]..." >&2
    exit 2
}
folder="$1"
shift
[ -d "$folder" ] || { echo "transcribe.sh: $folder: expected a folder" >&2; exit 1; }
PATH="$PATH:$(cd "$(dirname "$0")/.." && pwd)/build/bin"
command -v whisper-transcribe >/dev/null || {
    echo "transcribe.sh: whisper-transcribe is not built: run pipelines/demo.sh first" >&2
    exit 1
}

# A wrong flag, model or language ends the run here, not once for every recording: the right ones
# get as far as missing the input.
dry="$(whisper-transcribe "$@" < /dev/null 2>&1 > /dev/null)"
dry_status=$?
case "$dry" in
    *"nothing came on stdin"*) ;;
    *) echo "$dry" >&2; exit "$dry_status" ;;
esac

done_now=0 skipped=0 broken=()
work="$(mktemp -d "$folder/.hark.XXXXXX")" || exit 1
trap 'rm -rf "$work" "$work.list"' EXIT
declare -A stems=() names=()
list="$work.list"
find "$folder" -type f ! -path '*/.hark.*' -regextype posix-extended -iregex \
    '.*\.(wav|mp3|m4a|mp4|m4v|mov|mkv|webm|ogg|oga|opus|flac|aac|aif|aiff|wma|avi|3gp)' -print0 |
    sort -z > "$list"
while IFS= read -r -d '' recording; do
    stem="${recording%.*}"
    stems[$stem]=$((${stems[$stem]:-0} + 1))
    names[$recording]=1
done < "$list"

while IFS= read -r -d '' recording; do
    stem="${recording%.*}"
    [ "${stems[$stem]}" -eq 1 ] && [ -z "${names[$stem]:-}" ] || stem="$recording"
    if [ -f "$stem.srt" ] && [ -f "$stem.txt" ]; then
        skipped=$((skipped + 1))
        continue
    fi
    rm -f "$work"/*
    if audio-decode "$recording" | mel |
        whisper-transcribe --format srt,text --output-dir "$work" "$@"; then
        # The text last: both are there once it is.
        mv "$work"/*.srt "$stem.srt" && mv "$work"/*.txt "$stem.txt" && done_now=$((done_now + 1))
    else
        broken+=("$recording")
    fi
done < "$list"

echo "transcribe.sh: $done_now transcribed, $skipped already there, ${#broken[@]} failed" >&2
for recording in ${broken[@]+"${broken[@]}"}; do
    echo "  failed: $recording" >&2
done
[ ${#broken[@]} -eq 0 ]
