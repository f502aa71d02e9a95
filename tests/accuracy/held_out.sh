#!/bin/sh
# Speaks the sentences of sentences.py and writes DIR/*.wav (16 kHz, mono, 16 bits) and
# DIR/refs.jsonl, which says what is said in each.
#
#   sudo apt-get install espeak-ng flite sox python3
#   tests/accuracy/held_out.sh DIR
#
# Run again with the same versions of the tools (espeak-ng 1.51, flite 2.2, SoX 14.4.2) the files
# come out bit for bit the same.
set -eu
[ $# = 1 ] || { echo "usage: held_out.sh DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

speak() { # VOICE SPEED TEXT OUT.wav, as in samples/make.sh
    case $1,$2 in
    espeak:*,0) espeak-ng -v "${1#*:}" -w "$4" "$3" ;;
    espeak:*) espeak-ng -v "${1#*:}" -s "$2" -w "$4" "$3" ;;
    flite:*,0) flite -voice "${1#*:}" -t "$3" -o "$4" ;;
    flite:*) flite -voice "${1#*:}" --setf duration_stretch="$2" -t "$3" -o "$4" ;;
    esac
}

tab=$(printf '\t')
python3 "$here/sentences.py" > "$scratch/plan"
: > refs.jsonl
number=0
while IFS= read -r row; do
    number=$((number + 1))
    name=$(printf 'held_out_%02d.wav' "$number")
    voice=${row%%"$tab"*} row=${row#*"$tab"}
    speed=${row%%"$tab"*} row=${row#*"$tab"}$tab
    text=
    set --
    while [ -n "$row" ]; do
        pause=${row%%"$tab"*} row=${row#*"$tab"}
        sentence=${row%%"$tab"*} row=${row#*"$tab"}
        speak "$voice" "$speed" "$sentence" "$scratch/spoken.wav"
        sox -V1 -D "$scratch/spoken.wav" -r 16000 -c 1 -b 16 "$scratch/$#.wav" pad 0 "$pause"
        set -- "$@" "$scratch/$#.wav"
        text="$text${text:+ }$sentence"
    done
    sox -V1 -D "$@" "$name"
    printf '{"source": "%s", "text": "%s"}\n' "$name" "$text" >> refs.jsonl
done < "$scratch/plan"
