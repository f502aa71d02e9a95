#!/usr/bin/env bash
# Usage: tests/page.sh [BIN [SCREENSHOTS [TEST...]]]: opens the pages of `whisper-transcribe --format
# html` and of hark-serve in a real Chromium, and checks what they do (tests/page/test_*.py, for
# hark-serve test_server_*.py). BIN has the tools (build/bin). Pictures of the pages go to the folder
# SCREENSHOTS; look at them. Arguments after it choose tests: -k search. Installs Debian's chromium and
# chromium-driver if they are missing. Not part of tests/run.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. pipelines/packages.sh
install_packages chromium chromium-driver ffmpeg python3
bin="$(realpath -- "${1:-build/bin}")"
for tool in audio-decode mel whisper-transcribe hark-serve; do
    [ -x "$bin/$tool" ] || {
        echo "page.sh: $bin: has no $tool; build the tools first" >&2
        exit 2
    }
done
export PATH="$bin:$PATH"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
screenshots="${2:-$work/screenshots}"
mkdir -p "$screenshots" "$work/words" "$work/segments" "$work/server"
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

# What hark-serve's page is to write of samples/story.mp3; the same sound as a file that Chromium does
# not play, and four times; a recording that takes long; one for the microphone.
audio-decode samples/story.mp3 | mel | "${demo[@]}" --format srt,vtt,text,json --word-timestamps \
    --output-dir "$work/server" --output-name expected
ffmpeg -v error -i samples/story.mp3 "$work/server/story.aiff"
ffmpeg -v error -stream_loop 3 -i samples/story.mp3 -c copy "$work/server/long.mp3"
ffmpeg -v error -f lavfi -i anoisesrc=r=16000:a=0.1:seed=1:d=1200 "$work/server/noise.wav"
ffmpeg -v error -i samples/harbour.wav -af adelay=1s:all=1,apad=pad_dur=2 -ar 48000 "$work/server/voice.wav"

export HARK_PAGE_FOLDER="$work" HARK_PAGE_SCREENSHOTS="$screenshots" PYTHONDONTWRITEBYTECODE=1
python3 -m unittest discover --verbose --start-directory tests/page "$@"
