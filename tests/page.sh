#!/usr/bin/env bash
# Usage: tests/page.sh [BIN [SCREENSHOTS [TEST...]]]: opens the page of `whisper-transcribe --format
# html` in a real Chromium, and checks what it does (tests/page/test_*.py). BIN has the tools
# (build/bin). Pictures of the page go to the folder SCREENSHOTS; look at them. Arguments after it
# choose tests: -k search. Installs Debian's chromium and chromium-driver if they are missing. Not
# part of tests/run.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. pipelines/packages.sh
install_packages chromium chromium-driver ffmpeg python3
bin="$(realpath -- "${1:-build/bin}")"
[ -x "$bin/whisper-transcribe" ] || {
    echo "page.sh: $bin: has no whisper-transcribe; build the tools first" >&2
    exit 2
}
export PATH="$bin:$PATH"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
screenshots="${2:-$work/screenshots}"
mkdir -p "$screenshots" "$work/words" "$work/segments"
shift $(($# < 2 ? $# : 2))

# A name that an address, HTML and a script could each take for something else.
name="a story's #1 \"100%\" & <b>?.wav"
ffmpeg -v error -i samples/story.mp3 "$work/words/$name"
ffmpeg -v error -f lavfi -i anullsrc=r=8000:cl=mono -t 10800 "$work/words/long.flac"
demo=(whisper-transcribe --model demo --threads 1)
(cd "$work/words" && audio-decode "$name" | mel > "$work/story.mel")
"${demo[@]}" --format html --output-dir "$work/words" --output-name page < "$work/story.mel"
"${demo[@]}" --format srt,vtt,text,json --word-timestamps --output-dir "$work/words" \
    --output-name expected < "$work/story.mel"
# Without times of words, and without its recording.
"${demo[@]}" --format html,srt,json --output-dir "$work/segments" --output-name page \
    < "$work/story.mel"
# Three languages, two channels, noise, silence.
audio-decode --split-channels samples/*.{wav,mp3,flac,ogg,m4a,webm,mkv,mp4} | mel |
    "${demo[@]}" --format html,srt,vtt,text,json --word-timestamps --fallback-temperatures none \
        --output-name '{name}' --output-dir "$work/samples"
audio-decode samples/silence.wav | mel | "${demo[@]}" --format html > "$work/words/silence.html"
audio-decode - < samples/sea.wav | mel | "${demo[@]}" --format html > "$work/words/pipe.html"

export HARK_PAGE_FOLDER="$work" HARK_PAGE_SCREENSHOTS="$screenshots" PYTHONDONTWRITEBYTECODE=1
python3 -m unittest discover --verbose --start-directory tests/page "$@"
