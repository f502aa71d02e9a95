#!/usr/bin/env bash
# Usage: hark ask [OPTION]... RECORDING QUESTION
# Asks a language model about what is said in a recording.
#
# A QUESTION with {} in it is the whole prompt: {} stands for what is said.
# Otherwise the prompt is what is said, the question, and "Answer:"; with --chat
# what is said and the question, in the model's chat template. All of it and the
# answer must fit the model's context. A recording that lacks a part fails,
# unless audio-decode's --allow-truncated is given.
#
# Options:
#   -m, --model MODEL          language model: a name or a path
#       --whisper-model MODEL  Whisper model that transcribes the recording
#   -l, --language CODE|NAME   spoken language (de, German), or auto [auto]
#       --max-tokens N         length of the answer
#       --show-pipe            print the pipe that would run, and run nothing
#   -h, --help                 print a short help and exit
#
# Also all options of: gpt-generate.
#
# Examples:
#   hark ask meeting.mp3 'What was decided?'
#   hark ask talk.mp3 'Summary of this talk: {} In short:' --max-tokens 100
#   hark ask talk.mp3 'Who speaks?' --model ./Qwen2.5-1.5B-Instruct --chat
set -uo pipefail
script="hark ask"
here="$(dirname "${BASH_SOURCE[0]}")"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
. "$here/generate.sh"
help_if_asked "$@"
use_tools || exit

words_given=() show_pipe=""
parse() {
    learn_generator
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            --show-pipe) show_pipe=yes ;;
            --) shift && words_given+=("$@") && break ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                [ "$flag" != --prompt ] || wrong "--prompt: give the QUESTION as an argument"
                pass_generator_flag
                ;;
            *) words_given+=("$1") ;;
        esac
        shift
    done
    [ ${#words_given[@]} -eq 2 ] ||
        wrong "expected a recording and a question, got ${#words_given[@]} arguments"
}

parse "$@"
add_inputs "${words_given[0]}"
frame "${words_given[1]}"
[ -n "$show_pipe" ] || check_generator || exit
check_pipe || exit
generator=(gpt-generate "${generator[@]}" --prompt "$prompt")
[ -z "$show_pipe" ] || {
    show_stages "$(pipe_of)" "tr '\\n' ' '" "$(quoted "${generator[@]}")"
    exit
}
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
end_on_signals
answer() { one_line "$work/text" && "${generator[@]}" < "$work/line"; }
# A recording that fails is not asked about.
run_pipe > "$work/text" || exit
grep -q '[^[:space:]]' "$work/text" || die "${words_given[0]}: nothing is said"
run_group answer
