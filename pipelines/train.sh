#!/usr/bin/env bash
# Usage: hark train [OPTION]... TEXT...
#    or: hark train [OPTION]... --demo
# Trains a tokenizer and a small language model on texts, then writes a sample of
# the model.
#
# The same command continues a stopped run. DIR is a model for gpt-generate
# --model. It also has tokenizer/, train.bin, val.bin, tensorboard/, run.tsv (a
# line per step) and run.png. Settings that are not given are those of the preset
# quick-test, or of --config's.
#
# --demo takes two to three minutes on two CPU cores. It shows that a killed
# run resumes exactly: it ends with the same model, byte for byte.
#
# Options:
#   -o, --output-dir DIR  folder of the run [run]
#       --steps N         steps of the run [1000, or those of --config]
#       --vocab-size N    tokens of the tokenizer [512]
#       --config FILE     preset of gpt-train's settings [quick-test]
#   -p, --prompt TEXT     prompt of the sample [The]
#       --prove-resume    kill a short run too, resume it, compare the models
#       --demo            train on hark's own documents, with --prove-resume
#   -h, --help            print a short help and exit
#
# Also all options of: gpt-train.
#
# Examples:
#   hark train --demo
#   hark train book.txt --output-dir book --steps 2000
#   hark train *.txt --layers 6 --width 192 --heads 6 --output-dir larger
set -euo pipefail
script="hark train"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
help_if_asked "$@"
use_tools || exit

readonly proof_steps=60 killed_at=25 proof_saves=10
# Two characters are a token or more, and 1,235 tokens are the fewest of which some are held out.
readonly least_bytes=5000
run=run steps="" vocab_size=512 prompt=The prove="" demo="" texts=() preset="" warmup=""
options=()     # of each run of gpt-train
checked=()     # those that gpt-train can check before there are tokens
run_options=() # of the run itself alone
proof_options=(--steps "$proof_steps" --save-every "$proof_saves")

parse() {
    learn_flags gpt-train
    flag_name[--prompt]=--prompt flag_value[--prompt]=yes
    flag_name[-p]=--prompt flag_value[-p]=yes
    flag_name[--prove-resume]=--prove-resume flag_name[--demo]=--demo
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            --) shift && texts+=("$@") && break ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                take_option
                ;;
            *) texts+=("$1") ;;
        esac
        shift
    done
    [ -n "$preset$steps" ] || steps=1000
    [[ "${steps:-1}" =~ ^[1-9][0-9]{0,8}$ ]] ||
        wrong "--steps: expected a number above 0, got '$steps'"
    [[ "$vocab_size" =~ ^[1-9][0-9]{2,5}$ && "$vocab_size" -ge 256 ]] ||
        wrong "--vocab-size: expected 256 to 999999, got '$vocab_size'"
    if [ -n "$demo" ]; then
        [ ${#texts[@]} -eq 0 ] || wrong "--demo: has texts of its own, got '${texts[0]}'"
    else
        [ ${#texts[@]} -gt 0 ] || wrong "expected a text; hark train --demo shows a run without one"
    fi
    [ -z "$steps" ] || run_options+=(--steps "$steps")
    # A preset that is given has its own warmup, for which the proof is too short.
    [ -n "$warmup$preset" ] || run_options+=(--warmup $((steps / 10)))
    [ -n "$warmup" ] || proof_options+=(--warmup $((proof_steps / 10)))
}

# What take_flag found is this command's own, or goes to gpt-train.
take_option() {
    case "$flag" in
        --output-dir | --steps | --vocab-size | --config | --prompt)
            [ -n "$value" ] || wrong "$flag: expected a value" ;;
        --prove-resume | --demo)
            [[ "${words[0]}" != *=* ]] || wrong "$flag: expected no value, got '$value'" ;;
    esac
    case "$flag" in
        --output-dir) run="$value" ;;
        --steps) steps="$value" ;;
        --vocab-size) vocab_size="$value" ;;
        --config) preset="$value" ;;
        --prompt) prompt="$value" ;;
        --prove-resume) prove=yes ;;
        --demo) demo=yes prove=yes ;;
        --train | --val | --tokenizer | --model | --tensorboard)
            wrong "$flag: this command chooses it; use gpt-train" ;;
        --dry-run) wrong "$flag: not an option of this command; use gpt-train $flag" ;;
        --no-dry-run) ;; # set_training passes it
        --save-every | --export-*) run_options+=("${words[@]}") ;;
        --*mask-documents | --sample-* | --profile | --metrics | --*stats | --rendezvous* | --rank* | \
            --token-file) options+=("${words[@]}") ;;
        *)
            [ "$flag" != --warmup ] || warmup="$value"
            options+=("${words[@]}")
            checked+=("${words[@]}")
            ;;
    esac
}

# first_of PATH...: the first path that is there.
first_of() {
    local path
    for path in "$@"; do
        [ ! -e "$path" ] || { echo "$path" && return; }
    done
    die "not found: $*; install hark with cmake --install"
}

find_texts() {
    local documents text
    if [ -n "$demo" ]; then
        documents="$(first_of "$here/../docs" "$here/../../share/doc/hark/docs")"
        mapfile -t texts < <(find "$documents" "${documents%/*}/README.md" -name '*.md' | LC_ALL=C sort)
    fi
    [ -z "$preset" ] || [ -r "$preset" ] || die "$preset: cannot read this preset"
    for text in "${texts[@]}"; do
        [ -f "$text" ] && [ -r "$text" ] || die "$text: cannot read this text"
    done
}

# check_options: gpt-train takes them and the preset. A long text takes minutes; this is known before.
check_options() {
    gpt-train --config "$preset" --dry-run --train synthetic --vocab-size "$vocab_size" \
        --no-mask-documents --sample-every 0 "${checked[@]}" "${run_options[@]}" > /dev/null || exit
}

# bytes_of_texts: of all of them.
bytes_of_texts() { stat -L -c %s -- "${texts[@]}" | awk '{ bytes += $1 } END { printf "%.0f\n", bytes }'; }

# A run's tokens are those of its first texts, so other texts need another folder.
check_texts() {
    local sums bytes only=""
    bytes="$(bytes_of_texts)"
    if [ "$bytes" -lt "$least_bytes" ]; then
        [ ${#texts[@]} -gt 1 ] || only="${texts[0]}: "
        die "${only}too little text (got $bytes bytes, expected $least_bytes at least)"
    fi
    make_folder "$run" || exit 1
    sums="$(cat -- "${texts[@]}" | cksum) $vocab_size"
    [ -e "$run/texts.cksum" ] || echo "$sums" > "$run/texts.cksum"
    [ "$sums" = "$(cat "$run/texts.cksum")" ] ||
        die "$run: this run has other texts or another --vocab-size; choose another --output-dir$(
            compgen -G "$run/step-*" > /dev/null || echo ", or remove $run, which has no checkpoint")"
}

make_tokens() {
    local tokens
    if [ ! -e "$run/tokenizer/tokenizer.json" ]; then
        say "tokenizer of $vocab_size tokens -> $run/tokenizer"
        gpt-tokenize --train-tokenizer --vocab-size "$vocab_size" --output-dir "$run/tokenizer" \
            "${texts[@]}" || {
            rm -rf "$run/tokenizer" "$run/texts.cksum" # other texts may follow
            exit 1
        }
    fi
    [ ! -e "$run/train.bin" ] || return 0
    say "tokens -> $run/train.bin and $run/val.bin"
    # A 20th of the text is held out in four blocks at least, each for one sequence or more.
    tokens=$(($(bytes_of_texts) / 2))
    gpt-tokenize --tokenizer "$run/tokenizer" --val-output "$run/val.bin" --hold-out-every 20 \
        --val-block $((tokens / 80 < 65 ? 65 : tokens / 80 > 2048 ? 2048 : tokens / 80)) \
        "${texts[@]}" > "$run/train.bin.part"
    mv "$run/train.bin.part" "$run/train.bin"
}

# set_training DIR OPTION...: sets `training`, a command that writes a line per step to stdout. If this
# command is killed, it saves its checkpoint and ends.
set_training() {
    training=(setpriv --pdeathsig TERM gpt-train --config "$preset" --no-dry-run --tokenizer "$run/tokenizer"
        --train "$run/train.bin" --output-dir "$1" "${options[@]}" "${@:2}")
}

draw() {
    local plot="$here/plot-run"
    [ -x "$plot" ] || plot="$plot.sh"
    if [ "$(wc -l < "$run/run.tsv")" -lt 3 ]; then
        say "no picture: it takes two steps"
    elif command -v gnuplot > /dev/null; then
        "$plot" "$run/run.tsv" "$run/run.png"
    else
        say "no picture: gnuplot is not installed; then run: hark plot run $run/run.tsv $run/run.png"
    fi
}

# Two runs of the same command: one to its end, the other killed and started again.
prove_resume() {
    local killed lines
    work="$(mktemp -d)"
    trap 'rm -rf "$work"' EXIT
    set_training "$work/whole" "${proof_options[@]}"
    run_group "${training[@]}" > /dev/null
    set_training "$work/killed" "${proof_options[@]}"
    exec {lines}< <(exec "${training[@]}")
    killed=$!
    head -n "$killed_at" <&"$lines" > /dev/null
    kill -KILL "$killed" 2> /dev/null || die "the run to be killed had ended before"
    wait "$killed" 2> /dev/null || true
    exec {lines}<&-
    run_group "${training[@]}" > /dev/null
    cmp "$work/whole/model.safetensors" "$work/killed/model.safetensors" ||
        die "the resumed run has other weights than the undisturbed one"
    say "resume: a run killed after step $((killed_at - 1)) of $proof_steps and started again ends" \
        "with the same model, byte for byte, as one that was not killed"
}

parse "$@"
find_texts
[ -n "$preset" ] || preset="$(first_of "$here/../presets/gpt-train/quick-test.conf" \
    "$here/../../share/hark/presets/gpt-train/quick-test.conf")"
check_options
check_texts
# A signal ends this command once its stage has ended; gpt-train saves its checkpoint first.
end_on_signals
make_tokens
say "$([ -z "$steps" ] && echo steps || counted "$steps" step) -> $run, with a line per step in $run/run.tsv"
set_training "$run" --val "$run/val.bin" --tensorboard "$run/tensorboard" "${run_options[@]}"
run_group "${training[@]}" >> "$run/run.tsv"
draw
[ -z "$prove" ] || prove_resume
say "generated with gpt-generate --model $run --prompt '$prompt':"
gpt-generate --model "$(cd "$run" && pwd)" --prompt "$prompt" --seed 1 < /dev/null
echo
