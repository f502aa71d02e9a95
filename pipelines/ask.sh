#!/usr/bin/env bash
# Usage: hark ask [OPTION]... RECORDING|TRANSCRIPT QUESTION
# Asks a language model about what is said in a recording.
#
# A QUESTION with {} in it is the whole prompt: {} stands for what is said.
# Otherwise the prompt is what is said, the question, and "Answer:"; with --chat
# what is said and the question, in the model's chat template. If that and the
# answer do not fit the model's context, each part of the text is asked what
# helps to answer, and the answer is made of these notes. A recording that lacks
# a part fails, unless audio-decode's --allow-truncated is given.
#
# A transcript is a file that ends in .txt. To ask again without transcribing
# again, first run: hark transcribe talk.mp3 > talk.txt. After a stop the same
# command continues: the transcript and the answers of parts are kept in
# ~/.cache/hark/answers until the answer is there. What a stopped run has left
# there is removed by the next hark ask or hark summarize after a week.
#
# With --server the text must fit, and a recording may lack a part. Of
# gpt-generate's options only --chat, --system, --max-tokens, --seed, --stop and
# those of the sampler that are one number can be given.
#
# Options:
#   -m, --model MODEL          language model: a name or a path
#       --whisper-model MODEL  Whisper model that transcribes the recording
#   -l, --language CODE|NAME   spoken language (de, German), or auto [auto]
#       --max-tokens N         length of the answer
#       --cite                 tell the model when each segment is said, and ask
#                              for these times
#       --server URL           ask a hark-serve that runs: http://HOST:PORT or
#                              unix:PATH
#       --api-key-file FILE    the server's key; else the variable HARK_API_KEY
#       --show-pipe            print the pipe that would run, and run nothing
#       --profile FILE         where the time went, as a trace for Perfetto
#   -h, --help                 print a short help and exit
#
# Also all options of: gpt-generate.
#
# Examples:
#   hark ask meeting.mp3 'What was decided?'
#   hark ask talk.mp3 'Summary of this talk: {} In short:' --max-tokens 100
#   hark ask talk.mp3 'Who speaks?' --model ./Qwen2.5-1.5B-Instruct --chat
#   hark ask talk.mp3 'When is the budget discussed?' --cite --chat
#   hark ask --server unix:/run/user/1000/hark talk.mp3 'Who speaks?' --chat
set -uo pipefail
script="hark ask"
here="$(dirname "${BASH_SOURCE[0]}")"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
. "$here/generate.sh"
. "$here/server.sh"
help_if_asked "$@"
use_tools || exit

words_given=() show_pipe="" times=""
with_times=(sed -E 's/^\[([0-9:]+)\.[0-9]+ --> [^]]*\] */[\1] /')
parse() {
    learn_generator
    learn_server_flags
    flag_name[--cite]=--cite
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            --show-pipe) show_pipe=yes ;;
            --) shift && words_given+=("$@") && break ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                [ "$flag" != --prompt ] || wrong "--prompt: give the QUESTION as an argument"
                note_flag || note_measure generator_measures || {
                    [ "$flag" = --cite ] && times=yes
                } || pass_generator_flag
                ;;
            *) words_given+=("$1") ;;
        esac
        shift
    done
    [ ${#words_given[@]} -eq 2 ] ||
        wrong "expected a recording and a question, got $(counted ${#words_given[@]} argument)"
    [ -n "$server" ] || [ -z "$key_file" ] || wrong "--api-key-file: needs --server"
    [ -z "$server" ] || ! is_text "${words_given[0]}" || wrong "--server: needs a recording, got ${words_given[0]}"
    question="${words_given[1]}"
    [ -z "$times" ] || ask_for_times
}

# ask_for_times: the transcriber writes them, and the question asks for them.
ask_for_times() {
    ! is_text "${words_given[0]}" || wrong "--cite: needs a recording, got ${words_given[0]}"
    transcriber=("${transcriber[@]/--no-times/--times}")
    [[ "$question" == *'{}'* ]] || question+=" Give the times in brackets at which it is said."
}

# in_parts: whether the answer may be made of those to parts of the text: it is one, and plain text.
in_parts() {
    local name
    for name in --format --n --echo --show-prompt --conversation --extract --constrain --json-schema \
        --regex --grammar --prefill-only --from-cache; do
        [ -z "${generator_flag[$name]:-}" ] || return
    done
}

# set_part_question: what a part of the text is asked.
set_part_question() {
    part_question="$question"
    [[ "$question" == *'{}'* ]] || part_question="From this part of a longer transcript, note all that \
helps to answer the question, in its language. Keep names, figures and times. The question: $question"
}

# read_text: what is said, in `work`/text, a sentence or segment per line.
read_text() {
    if is_text "${words_given[0]}"; then
        [ -r "${words_given[0]}" ] || die "${words_given[0]}: cannot read it"
        cat -- "${words_given[0]}" > "$work/said" || return
    else
        transcribe || return
        [ -z "$times" ] || "${with_times[@]}" -i "$work/said"
    fi
    sed 's/\([.?!]\) /\1\n/g' "$work/said" > "$work/text"
    grep -q '[^[:space:]]' "$work/text" || die "${words_given[0]}: nothing is said"
}

# answer: to `work`/text, on stdout as it is made. Messages are in `work`/errors too, that of a text
# which does not fit only there.
answer() {
    one_line "$work/text" || return
    {
        measured gpt-generate "${generator[@]}" "${generator_measures[@]}" --prompt "$prompt" \
            < "$work/line" 2>&1 >&3 |
            sed -u -e "w $work/errors" -e '/ do not fit the context (got /d' >&2
    } 3>&1
}

# answer_all: in parts if the whole does not fit.
answer_all() {
    local status
    set_part_question
    while frame "$question"; do
        run_group answer && { drop_kept; return; }
        status=$?
        too_long || return "$status"
        in_parts && HARK_GPT_GENERATE_N="" HARK_GPT_GENERATE_FORMAT="" HARK_GPT_GENERATE_ECHO="" \
            shorten "${words_given[0]}" "$part_question" && continue
        cat "$work/errors" >&2
        return 1
    done
}

# set_server_fields: what the flags are in the server's forms: `chosen` of the recording, `settings`
# of the answer, `stops` and `system`.
set_server_fields() {
    local i flag value name
    for ((i = 0; i < ${#given[@]}; i += 2)); do
        flag="${given[i]}" value="${given[i + 1]}" name="${given[i]#--}"
        case "$flag" in
            --server | --api-key-file | --quiet | --chat) ;;
            --model) language_model="$value" ;;
            --whisper-model) whisper_model="$value" ;;
            --language) [ "$value" = auto ] || chosen+=("language=$value") ;;
            --system) system="$value" ;;
            --stop) stops+=("$(json_text "$value")") ;;
            --max-tokens | --seed | --temperature | --top-k | --top-p | --min-p | --typical-p | \
                --repetition-penalty | --presence-penalty | --frequency-penalty | --dry-multiplier | \
                --dry-base | --dry-allowed-length | --xtc-probability | --xtc-threshold | \
                --mirostat | --mirostat-tau | --mirostat-eta)
                [[ "$value" =~ ^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$ ]] ||
                    wrong "$flag: expected a number, got '$value'"
                settings[${name//-/_}]="$value"
                ;;
            *) refuse_with_server "$flag" ;;
        esac
    done
    [ -z "$system" ] || is_chat || wrong "--system needs --chat"
}

# json_text TEXT: as a JSON string.
json_text() { jq -cn --arg text "$1" '$text'; }

# write_body: the request for the answer to `prompt` and `work`/line, in `work`/body.
write_body() {
    local name body=""
    local text='($prompt | split("{}") | join($said))'
    local messages="[(\$system | select(. != \"\") | {role: \"system\", content: .}),
        {role: \"user\", content: $text}]"
    settings[model]="$(json_text "$model")"
    [ ${#stops[@]} -eq 0 ] || settings[stop]="[$(IFS=, && echo "${stops[*]}")]"
    if is_chat; then name=messages text="$messages"; else name=prompt; fi
    settings[$name]="$(jq -cn --arg prompt "$prompt" --arg system "$system" \
        --rawfile said "$work/line" "$text")"
    for name in "${!settings[@]}"; do body+=",\"$name\":${settings[$name]}"; done
    printf '{%s}' "${body#,}" > "$work/body"
}

# ask_server: prints what gpt-generate would: the reasoning, if it is not told to be quiet, to stderr.
ask_server() {
    local language_model="" whisper_model="" system="" chosen=() stops=() path=/v1/completions
    # gpt-generate's defaults, where the server has others.
    local -A settings=([max_tokens]=200 [seed]=0)
    set_server_fields
    [ -z "$show_pipe" ] || refuse_with_server --show-pipe
    [ "${settings[max_tokens]}" != 0 ] || settings[max_tokens]=200
    use_server
    choose_model "$language_model" --model /v1/completions
    language_model="$model"
    choose_model "$whisper_model" --whisper-model /v1/audio/transcriptions
    request_transcript "${inputs[0]}" transcriptions "model=$model" response_format=text \
        "${chosen[@]}" || die "${words_given[0]}: $problem"
    mv "$work/answer" "$work/text"
    grep -q '[^[:space:]]' "$work/text" || die "${words_given[0]}: nothing is said"
    one_line "$work/text"
    model="$language_model"
    write_body
    ! is_chat || path=/v1/chat/completions
    request "$path" -H 'Content-Type: application/json' --data-binary "@$work/body" ||
        die "$server: $problem"
    [ -n "${generator_flag[--quiet]:-}" ] ||
        jq -j '.choices[0].message.reasoning_content // empty | . + "\n"' "$work/answer" >&2
    jq -j '.choices[0] | .text // .message.content // "" |
        if endswith("\n") then . else . + "\n" end' "$work/answer"
}

parse "$@"
add_inputs "${words_given[0]}"
frame "$question"
[ -z "$server" ] || { ask_server; exit; }
[ -n "$show_pipe" ] || check_generator || exit
is_text "${words_given[0]}" || check_pipe || exit
[ -z "$show_pipe" ] || {
    if is_text "${words_given[0]}"; then
        stages=("cat $(quoted "${words_given[0]}")")
    else
        stages=("$(pipe_of)")
    fi
    [ -z "$times" ] || stages+=("$(quoted "${with_times[@]}")")
    show_stages "${stages[@]}" "tr '\\n' ' '" "$(quoted gpt-generate "${generator[@]}" --prompt "$prompt")"
    exit
}
work="$(mktemp -d)"
errors="$work/errors"
trap 'status=$?; rm -rf "$work"; end_profile "$status"' EXIT
begin_profile
end_on_signals
keep "${words_given[0]}" "$question"
# A recording that fails is not asked about.
read_text || exit
answer_all
