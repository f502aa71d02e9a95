#!/usr/bin/env bash
# Draws what the tools make of a recording: its mel spectrogram, where speech is, the words that
# were said and how probable each is.
#
#   usage: pipelines/plot-transcript.sh RECORDING [OUT.png] [WHISPER-TRANSCRIBE OPTION]...
#          pipelines/plot-transcript.sh talk.mp3 talk.png --model ~/models/whisper-small/
#
# Without OUT.png the picture is named after the recording and is in the current folder. It is
# 1600 pixels wide and has a strip for every 20 s. The tools on the PATH are taken, or those of this
# source tree's build/bin.
#
#   recording -> audio-decode -> vad -> mel ----------------> regions of speech, spectrogram
#                           \--> mel -> whisper-transcribe -> words
set -euo pipefail
script=plot-transcript.sh
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
help_if_asked "$@"
[ $# -ge 1 ] && [[ "$1" != -* ]] || {
    echo "usage: $0 RECORDING [OUT.png] [WHISPER-TRANSCRIBE OPTION]..." >&2
    exit 2
}
fail() { echo "$script: $1" >&2 && exit 1; }
command -v gnuplot > /dev/null || fail "gnuplot is missing: on Debian, apt-get install gnuplot-nox"
. "$(dirname "${BASH_SOURCE[0]}")/recordings.sh"
use_tools || exit
recording="$1" name="${1##*/}"
shift
[ -f "$recording" ] && [ -r "$recording" ] || fail "$recording: cannot read this recording"
out="${name%.*}.png"
[ $# -eq 0 ] || [[ "$1" == -* ]] || { out="$1" && shift; }
[[ "$out" != -* ]] || out="./$out"
[ ! -d "$out" ] || fail "$out: expected a file for the picture, found a folder"
[ -d "$(dirname "$out")" ] || fail "$out: there is no such folder to write to"
check_transcriber 1 --word-timestamps --format json "$@" || exit

strip=20    # seconds
longest=600 # seconds: the picture of more would be too tall to look at
work="$(mktemp -d)"
trap 'rm -rf "$work" "$out.unfinished"' EXIT

# read_mel: goes through the documents of the mel stream, one a strip (docs/formats.md). Writes
# `strips` (its first second, where its values begin in the stream, frames) and `regions` (begin and
# end in samples); sets `bands` and `seconds`, those of the whole recording.
read_mel() {
    local at=0 size length header data
    size="$(stat -c %s "$work/mel")"
    : > "$work/strips"
    : > "$work/regions"
    while [ "$at" -lt "$size" ]; do
        length="$(od -An -t u8 -j "$at" -N 8 "$work/mel")"
        data=$((at + 8 + length)) at=$((at + 8))
        header="$(dd if="$work/mel" iflag=skip_bytes,count_bytes skip="$at" count=$((length)) \
            status=none)"
        at="$data"
        [[ "$header" =~ \"start\":\"([0-9]+)\" ]]
        local start="${BASH_REMATCH[1]}"
        [[ "$header" =~ \"log_mel\":\{\"dtype\":\"F32\",\"shape\":\[([0-9]+),([0-9]+)\],\"data_offsets\":\[([0-9]+),([0-9]+)\] ]]
        bands="${BASH_REMATCH[1]}"
        echo "$((start / 100)) $((data + BASH_REMATCH[3])) ${BASH_REMATCH[2]}" >> "$work/strips"
        at=$((at > data + BASH_REMATCH[4] ? at : data + BASH_REMATCH[4]))
        if [[ "$header" =~ \"speech\":\{\"dtype\":\"I64\",\"shape\":\[[0-9]+,2\],\"data_offsets\":\[([0-9]+),([0-9]+)\] ]]; then
            od -An -v -t d8 -w16 -j $((data + BASH_REMATCH[1])) \
                -N $((BASH_REMATCH[2] - BASH_REMATCH[1])) "$work/mel" >> "$work/regions"
            at=$((at > data + BASH_REMATCH[2] ? at : data + BASH_REMATCH[2]))
        fi
        [[ ! "$header" =~ \"content_frames\":\"([0-9]+)\" ]] || seconds="$(
            LC_ALL=C awk -v frames="${BASH_REMATCH[1]}" 'BEGIN { printf "%.2f", frames / 100 }')"
    done
}

audio-decode "$recording" > "$work/audio"
vad < "$work/audio" | mel --mels "$mels" --chunk "$strip" > "$work/mel"
read_mel
[ "$seconds" != 0.00 ] || fail "$recording: expected sound, found none"
[ "${seconds%.*}" -lt "$longest" ] ||
    fail "$recording: expected less than $longest seconds, found $seconds: cut it first (ffmpeg -ss START -t SECONDS)"
mel --mels "$mels" < "$work/audio" |
    whisper-transcribe --word-timestamps --format json "$@" > "$work/json"

# The greatest value of the spectrogram.
loudest="$(while read -r _ data frames; do
    od -An -v -t f4 -w32 -j "$data" -N $((4 * bands * frames)) "$work/mel"
done < "$work/strips" | LC_ALL=C awk '{ for (i = 1; i <= NF; ++i) if ($i > max || NR == 1) max = $i }
    END { print max }')"

# start, end, probability, word: a line each, from the indented JSON, where each value has a line.
LC_ALL=C awk '
    function value() { sub(/^[^:]*: /, ""); sub(/,$/, ""); return $0 }
    /^ *"word": / {
        word = value()
        gsub(/^"|"$/, "", word)
        gsub(/\\[bfnrt]|\\u00[01][0-9a-f]/, " ", word)
        gsub(/\\"/, "\"", word)
        gsub(/\\\\/, "\\", word)
        gsub(/^ +| +$/, "", word)
        inside = 1
    }
    inside && /^ *"start": / { start = value() }
    inside && /^ *"end": / { end = value() }
    inside && /^ *"probability": / {
        inside = 0
        if (word != "") print start "\t" end "\t" value() "\t" word
    }' "$work/json" > "$work/words"

# Fonts are fontconfig's, which gnuplot draws with.
fc-list --format '%{charset}\n' > "$work/fonts"
name="$name" work="$work" bands="$bands" seconds="$seconds" loudest="$loudest" strip="$strip" LC_ALL=C \
    awk -f "${BASH_SOURCE[0]%.sh}.awk" "$work/strips" "$work/regions" "$work/fonts" "$work/words" \
    > "$work/plot"
gnuplot "$work/plot"
cp "$work/out.png" "$out.unfinished"
mv "$out.unfinished" "$out"
