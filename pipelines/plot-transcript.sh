#!/usr/bin/env bash
# Usage: hark plot transcript [OPTION]... RECORDING [OUT.png]
# Draws the transcript of a recording: spectrogram, speech, sentences, and how
# probable each word is.
#
# Without OUT.png the picture is named after the recording and is in the current
# folder. It is 1600 pixels wide and has a strip for every 20 s. Words with a
# probability below 0.7 have a dashed line, those below 0.4 a solid one.
#
# Options:
#   -m, --model MODEL  Whisper model: a name or a path
#   -h, --help         print a short help and exit
#
# Also all options of: whisper-transcribe.
#
# Examples:
#   hark plot transcript talk.mp3
#   hark plot transcript talk.mp3 picture.png --model small
#   hark plot transcript talk.mp3 --language German --vad
set -euo pipefail
#   recording -> audio-decode -> vad -> mel ----------------> regions of speech, spectrogram
#                           \--> mel -> whisper-transcribe -> words
script="hark plot transcript"
here="$(dirname "${BASH_SOURCE[0]}")"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
help_if_asked "$@"
use_tools || exit

# The picture is made of JSON with words, whatever the user's defaults are.
export HARK_TIMES="" HARK_CONFIDENCE="" HARK_SPLIT_CHANNELS=""
parse() {
    learn_flags whisper-transcribe
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            --) shift && add_inputs "$@" && break ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                transcriber+=("${words[@]}")
                ;;
            *) add_inputs "$1" ;;
        esac
        shift
    done
    [ ${#inputs[@]} -eq 1 ] || [ ${#inputs[@]} -eq 2 ] ||
        wrong "expected a recording, and maybe a picture, got ${#inputs[@]} arguments"
    [ ${#inputs[@]} -eq 1 ] || [[ "${inputs[1]}" == *.[Pp][Nn][Gg] ]] ||
        wrong "${inputs[1]}: expected a name that ends in .png for the picture"
}

parse "$@"
command -v gnuplot > /dev/null || die "gnuplot is missing: on Debian, apt-get install gnuplot-nox"
recording="${inputs[0]}" name="${inputs[0]##*/}"
[ -f "$recording" ] && [ -r "$recording" ] || die "$recording: cannot read this recording"
out="${inputs[1]:-${name%.*}.png}"
[ ! -d "$out" ] || die "$out: expected a file for the picture, found a folder"
[ -d "$(dirname "$out")" ] || die "$out: there is no such folder to write to"
check_transcriber --word-timestamps --format json "${transcriber[@]}" || exit

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
[ "$seconds" != 0.00 ] || die "$recording: expected sound, found none"
[ "${seconds%.*}" -lt "$longest" ] ||
    die "$recording: expected less than $longest seconds, found $seconds: cut it first (ffmpeg -ss START -t SECONDS)"
mel --mels "$mels" < "$work/audio" |
    whisper-transcribe --word-timestamps --format json "${transcriber[@]}" > "$work/json"

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
