#!/usr/bin/env bash
# From nothing to a transcript: installs packages, builds, and runs the pipeline on a sample.
# Prints the transcript and a continuation of it. Run again, it only does what is missing.
#
#   usage: pipelines/demo.sh [RECORDING]
#
#   recording -> ffmpeg -> mel -> whisper-transcribe -> text -> gpt-generate -> continuation
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
help_if_asked "$@"
[[ $# -le 1 && "${1:-}" != -* ]] || { echo "usage: pipelines/demo.sh [RECORDING]" >&2; exit 2; }
[ $# -eq 0 ] || recording="$(realpath -- "$1")"
cd "$(dirname "$0")/.."
. pipelines/packages.sh
recording="${recording:-samples/story.mp3}"
[ -r "$recording" ] || { echo "demo.sh: $recording: cannot read this recording" >&2; exit 1; }

install_packages $hark_packages ffmpeg
if [ ! -f build/build.ninja ]; then
    cmake --preset cpu -DHARK_BUILD_TESTS=OFF >&2
fi
cmake --build build --target all >&2
PATH="$PWD/build/bin:$PATH"

echo "# $recording"
ffmpeg -v error -nostdin -i "$recording" -f wav - | mel | whisper-transcribe --model demo |
    tee build/demo-transcript.txt
echo
echo "# gpt-generate continues:"
tr '\n' ' ' < build/demo-transcript.txt | gpt-generate --model demo --max-tokens 60 --seed 1
echo
