# Sourced by the commands that give what is said to a language model, after recordings.sh, flags.sh
# and help.sh.
# shellcheck shell=bash disable=SC2154,SC2034

generator=()          # options of gpt-generate
generator_measures=() # those of the run alone, not of the one that checks the others
declare -A generator_flag=() # of a flag of gpt-generate that was given: its value, or yes
model_flag=--whisper-model
# The model reads plain text, as one prompt, whatever the user's defaults are.
export HARK_SPLIT_CHANNELS="" HARK_GPT_GENERATE_INPUT_FORMAT="" HARK_MAX_LINE_WIDTH="" \
    HARK_MAX_LINE_COUNT="" HARK_MAX_WORDS_PER_LINE="" HARK_HIGHLIGHT_WORDS=""
transcriber=(--format text --no-times --no-confidence --task transcribe)

# learn_generator: take_flag knows gpt-generate's flags and those of the transcriber.
learn_generator() {
    learn_flags gpt-generate
    learn_own_flags --whisper-model --language -l
    flag_name[--allow-truncated]=--allow-truncated
    flag_name[--show-pipe]=--show-pipe
}

# pass_generator_flag: the flag that take_flag found goes to its tool.
pass_generator_flag() {
    case "$flag" in
        --whisper-model | --language | -l)
            [ -n "$value" ] || wrong "$flag: expected a value" ;;
    esac
    case "$flag" in
        --whisper-model) transcriber+=(--model "$value") ;;
        --language | -l) transcriber+=(--language "$value") ;;
        --allow-truncated) decode+=("${words[@]}") ;;
        --no-*) generator+=("${words[@]}") generator_flag[--${flag#--no-}]="" ;;
        *) generator+=("${words[@]}") generator_flag[$flag]="${value:-yes}" ;;
    esac
}

# check_generator: gpt-generate has its model and takes its options. Transcribing takes long; this
# is known before.
check_generator() {
    local show=(--show-prompt)
    [ -z "${generator_flag[--show-prompt]:-}" ] || show=()
    gpt-generate "${generator[@]}" "${show[@]}" --prompt x < /dev/null > /dev/null
}

# is_chat: gpt-generate is asked for a chat.
is_chat() { [ -n "${generator_flag[--chat]:-}" ]; }

# frame QUESTION: sets `prompt` to the question with {} for what is said. A model that was trained
# for chats needs no more than both of them.
frame() {
    prompt="$1"
    [[ "$prompt" != *'{}'* ]] || return 0
    if is_chat; then prompt=$'{}\n\n'"$1"; else prompt=$'{}\n\nQuestion: '"$1"$'\nAnswer:'; fi
}

# one_line FILE: its lines as one, in `work`/line. No pipe to the generator: tr would complain of one
# that ends at once.
one_line() { tr '\n' ' ' < "$1" > "$work/line"; }
