#!/bin/sh
# Transcribes the recordings of held_out.sh in every configuration of the list below and prints how
# many errors each makes, with openai-whisper's rows where reference.py has been run before.
#
#   PATH=$PWD/build/bin:$PATH tests/accuracy/table.sh DIR MODEL    # a name or an absolute folder
#
# Tab-separated: configuration, word error rate, character error rate, substitutions, deletions,
# insertions, recordings whose text is that of openai-whisper with the same options (- where that
# was not run), seconds of wall time. DIR keeps CONFIGURATION.jsonl and .seconds: what exists is
# not made again. THREADS (1) is the number of threads. The temperature is 0 alone, so that every run
# gives the same.
set -eu
[ $# = 2 ] || { echo "usage: table.sh DIR MODEL" >&2; exit 2; }
model=$2
cd "$1"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

audio-decode held_out_*.wav | mel > "$scratch/mel"

run() { # NAME FLAGS...
    name=$1
    shift
    if [ ! -s "$name.seconds" ]; then
        begin=$(date +%s)
        whisper-transcribe --model "$model" --language en --fallback-temperatures none --format jsonl \
            --threads "${THREADS:-1}" "$@" < "$scratch/mel" > "$name.jsonl"
        echo $(($(date +%s) - begin)) > "$name.seconds"
    fi
    row "$name"
}

row() { # NAME
    reference=reference_$(expr "$1" : '.*\(beam_[0-9]*\)')
    case $1 in
    *_no_previous) reference=${reference}_no_previous ;;
    *_independent) reference=none ;; # openai-whisper has no such mode
    esac
    same=-
    if [ -s "$reference.seconds" ]; then
        same=$(whisper-eval --reference "$reference.jsonl" --normalizer none --format tsv \
            < "$1.jsonl" |
            awk -F'\t' 'NR > 1 && $1 != "total" && $9 == 0 { n++ } END { print n + 0 }')
    fi
    whisper-eval --reference refs.jsonl --normalizer english --format tsv < "$1.jsonl" |
        awk -F'\t' -v OFS='\t' -v name="$1" -v same="$same" -v seconds="$(cat "$1.seconds")" '
            $1 == "total" { print name, $2, $3, $5, $6, $7, same, seconds }'
}

printf 'configuration\twer\tcer\tsubstitutions\tdeletions\tinsertions\tsame_text\tseconds\n'
for reference in reference_*.seconds; do
    if [ -s "$reference" ]; then row "${reference%.seconds}"; fi
done
for beams in 1 5; do
    for dtype in f32 auto bf16 int8; do
        run "${dtype}_beam_$beams" --dtype $dtype --beam-size $beams
    done
    run "f32_beam_${beams}_no_previous" --dtype f32 --beam-size $beams --no-previous-text
    run "f32_beam_${beams}_independent" --dtype f32 --beam-size $beams --windows independent
done
for beams in 1 5; do
    for dtype in bf16 int8; do
        run "${dtype}_beam_${beams}_independent" --dtype $dtype --beam-size $beams \
            --windows independent
    done
done
