#!/usr/bin/env bash
# A folder of recordings in, a .srt and a .txt beside each out. For many on a rented GPU: batch.sh.
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
script=transcribe.sh
. "$(dirname "${BASH_SOURCE[0]}")/recordings.sh"
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
help_if_asked "$@"
[ $# -ge 1 ] && [ "${1#-}" = "$1" ] || {
    echo "usage: $0 FOLDER [WHISPER-TRANSCRIBE OPTION]..." >&2
    exit 2
}
folder="$1"
shift
[ -d "$folder" ] || { echo "transcribe.sh: $folder: expected a folder" >&2; exit 1; }
use_tools || exit

shopt -s dotglob # a recording's name may begin with a dot
work="$(mktemp -d "$folder/.hark.XXXXXX")" || exit 1
trap 'rm -rf "$work"' EXIT
check_transcriber 1 --format srt,text --output-dir "$work" "$@" || exit

done_now=0 skipped=0 broken=()
mapfile -d '' -t recordings < <(find_recordings "$folder")
[ ${#recordings[@]} -gt 0 ] || { echo "transcribe.sh: $folder: found no recordings" >&2; exit 1; }
name_transcripts "${recordings[@]}"
for recording in "${recordings[@]}"; do
    stem="${stems[$recording]}"
    if [ -f "$stem.srt" ] && [ -f "$stem.txt" ]; then
        skipped=$((skipped + 1))
        continue
    fi
    rm -f "$work"/*
    # The text last: both are there once it is.
    if audio-decode "$recording" | mel --mels "$mels" |
        whisper-transcribe --format srt,text --output-dir "$work" "$@" &&
        mv -T "$work"/*.srt "$stem.srt" && mv -T "$work"/*.txt "$stem.txt"; then
        done_now=$((done_now + 1))
    else
        broken+=("$recording")
    fi
done

echo "transcribe.sh: $done_now transcribed, $skipped already there, ${#broken[@]} failed" >&2
for recording in ${broken[@]+"${broken[@]}"}; do
    echo "  failed: $recording" >&2
done
[ ${#broken[@]} -eq 0 ]
