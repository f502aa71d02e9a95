#!/bin/sh
# Transcribes recordings made to provoke loops (loud noise, tones, chords, babble, speech that is
# drowned in noise, speech with long silences) with and without the options against them, and
# prints what came of it.
#
#   pip install numpy
#   PATH=$PWD/build/bin:$PATH tests/accuracy/loops.sh DIR MODEL    # a name or an absolute folder
#
# Tab-separated: kind, configuration, words written, words of them in loops (loops.py says what
# that is), and for speech: words said, substituted, deleted and inserted ones. DIR keeps the
# recordings and CONFIGURATION.jsonl, with .seconds: what exists is not made again. THREADS (1) is
# the number of threads. English is given; the temperature falls back as by default, but in greedy.
set -eu
[ $# = 2 ] || { echo "usage: loops.sh DIR MODEL" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
model=$2
mkdir -p "$1"
cd "$1"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 "$here/loops.py" make .
audio-decode *_[1-4].wav | mel > "$scratch/mel"

run() { # NAME FLAGS...
    name=$1
    shift
    [ ! -s "$name.seconds" ] || return 0
    begin=$(date +%s)
    whisper-transcribe --model "$model" --language en --format jsonl --threads "${THREADS:-1}" \
        "$@" < "$scratch/mel" > "$name.jsonl"
    echo $(($(date +%s) - begin)) > "$name.seconds"
}

run default
run max_repeats --max-repeats 3
run vad --vad
run vad_max_repeats --vad --max-repeats 3
run greedy --fallback-temperatures none
run greedy_max_repeats --fallback-temperatures none --max-repeats 3
python3 "$here/loops.py" table . default max_repeats vad vad_max_repeats greedy greedy_max_repeats
