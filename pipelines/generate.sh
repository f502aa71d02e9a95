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

# is_text PATH: a transcript, not a recording.
is_text() { [[ "$1" == *.txt ]]; }

# one_line FILE: its lines as one, in `work`/line. No pipe to the generator: tr would complain of one
# that ends at once.
one_line() { tr '\n' ' ' < "$1" > "$work/line"; }

# generate PROMPT OPTION...: the answers to stdin, on stdout; messages are in the file `errors`.
generate() {
    frame "$1"
    shift
    run_group measured gpt-generate "${generator[@]}" "${generator_measures[@]}" --prompt "$prompt" \
        "$@" 2> "$errors"
}

kept_lock="" # file descriptor of the lock of `kept`
settings_file="${XDG_CONFIG_HOME:-${HOME:-}/.config}/hark/config"

# made_of FILE: all that what is made of the file depends on: words, settings, and the files of models.
made_of() {
    local word models=("${XDG_DATA_HOME:-${HOME:-}/.local/share}/hark/models")
    printf '%s\0' "$script" "$PWD" "${transcriber[@]}" "${decode[@]}" "${generator[@]}"
    stat -L -c '%s %y' -- "$1"
    env | LC_ALL=C grep '^HARK_' | LC_ALL=C sort
    cat -- "$settings_file" 2> /dev/null
    while IFS= read -r word; do
        [ ! -e "${word#*=}" ] || models+=("${word#*=}")
    done < <(printf '%s\n' "${transcriber[@]}" "${generator[@]}" && env | grep '^HARK_')
    find -L "${models[@]}" -maxdepth 3 -type f -printf '%p %s %T@\n' 2> /dev/null | LC_ALL=C sort
}

# keep FILE WORD...: sets `kept`, a folder for what is made on the way from the file to the answer to
# the words. The same command finds it after a stop; drop_kept removes it. Folders of other commands
# that were not run again go after a week. What another process is at is not shared with it.
keep() {
    local all="${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}" key
    [ -z "$kept_lock" ] || exec {kept_lock}>&- # of the file before
    kept="$work/kept" kept_lock=""
    if [ -f "$1" ] && [ -n "$all" ]; then
        all+=/hark/answers
        key="$({ printf '%s\0' "$@" && made_of "$1"; } | sha256sum)"
        find "$all" -mindepth 1 -maxdepth 1 -mtime +6 -exec rm -rf {} + 2> /dev/null
        [ -z "${key%% *}" ] || kept="$all/${key%% *}"
    fi
    {
        (umask 077 && mkdir -p -- "$kept") && [ -O "$kept" ] &&
            { [ "$kept" = "$work/kept" ] || { exec {kept_lock}> "$kept/lock" && flock -n "$kept_lock"; }; }
    } 2> /dev/null || keep_nowhere
}

# keep_nowhere: what is kept goes at the end of this run.
keep_nowhere() { kept="$work/kept" && mkdir -p "$kept"; }

drop_kept() { rm -rf -- "$kept"; }

# transcribe: what is said in the recording in `inputs`, in `work`/said.
transcribe() {
    if [ -f "$kept/said" ]; then
        cp -- "$kept/said" "$work/said"
        return
    fi
    run_pipe > "$work/said" || return
    { cp -- "$work/said" "$kept/said.part" && mv -- "$kept/said.part" "$kept/said"; } 2> /dev/null ||
        say "$kept: cannot keep the transcript: the same command would make it again"
}

# set_seed SEED: of the answers, in place of the user's.
set_seed() {
    local i kept_options=()
    for ((i = 0; i < ${#generator[@]}; ++i)); do
        case "${generator[i]}" in
            --seed) ((++i)) ;;
            --seed=*) ;;
            *) kept_options+=("${generator[i]}") ;;
        esac
    done
    generator=("${kept_options[@]}" --seed "$1")
}

# answer_parts PROMPT: the answers to the lines of `work`/parts, a line each, in `work`/answers. What a
# stopped run has answered is not asked again.
answer_parts() {
    local file answered seed="${generator_flag[--seed]:-${HARK_GPT_GENERATE_SEED:-${HARK_SEED:-}}}"
    file="$kept/$({ printf '%s\0' "$1" && cat "$work/parts"; } | sha256sum | cut -c 1-64)"
    { : >> "$file" && : >> "$file.errors"; } 2> /dev/null ||
        { keep_nowhere && file="$kept/${file##*/}" && : >> "$file" && : >> "$file.errors"; } || return
    if grep -q ' do not fit the context (got ' "$file.errors"; then
        cp "$file.errors" "$work/errors"
        return 1
    fi
    # A line that failed has no answer, so that the others are not those of their places.
    ! grep -q ': line [0-9]*: ' "$file.errors" || : > "$file"
    # The seed of the settings is not known here.
    [ -n "$seed" ] || ! grep -qs '^[^#]*seed' -- "$settings_file" || : > "$file"
    answered="$(wc -l < "$file")"
    head -n "$answered" "$file" > "$work/answers" && cp "$work/answers" "$file" || return
    [ "$answered" -eq 0 ] || say "$answered of them are answered already"
    tail -n "+$((answered + 1))" "$work/parts" > "$work/rest"
    local errors="$file.errors" status=0 generator=("${generator[@]}")
    # A line's seed is that of the first one and the lines before it.
    [ "$answered" -eq 0 ] || set_seed $((${seed:-0} + answered))
    [ ! -s "$work/rest" ] ||
        generate "$1" --input-format lines < "$work/rest" >> "$file" || status=$?
    cp "$file.errors" "$work/errors"
    cp "$file" "$work/answers"
    return "$status"
}

# too_long: the last prompt, or one of its lines, did not fit. Sets `needed` and `room`, in tokens.
too_long() {
    read -r needed room < <(sed -n \
        's/.* do not fit the context (got \([0-9]*\)[^,]*, expected at most \([0-9]*\)).*/\1 \2/p' \
        "$work/errors" | sort -rn)
    [ -n "${room:-}" ]
}

# cut_text PARTS: the lines of `work`/text in about that many parts of equal size, one line each.
cut_text() {
    awk -v parts="$1" '
        NR == FNR { size += length($0) + 1; next }
        { line = line (line == "" ? "" : " ") $0; done += length($0) + 1 }
        done >= size * (made + 1) / parts { print line; line = ""; ++made }
        END { if (line != "") print line }' "$work/text" "$work/text"
}

# no_answer: the reasoning took all tokens, say.
no_answer() {
    echo "$script: the model gives no answer; give more --max-tokens" > "$work/errors"
    return 1
}

# shorten PATH PROMPT: puts the answers to its parts in place of the text in `work`/text.
shorten() {
    local before after parts lines
    lines="$(wc -l < "$work/text")"
    [ "$lines" -gt 1 ] || return
    before="$(wc -c < "$work/text")"
    parts=$((needed * 5 / (room * 4) + 1))
    while cut_text "$parts" > "$work/parts"; do
        say "$1: text and answer, $needed tokens, do not fit the context of $room: $(wc -l < "$work/parts") parts"
        answer_parts "$2" && break
        too_long || return
        [ "$parts" -lt "$lines" ] || return
        parts=$((parts * 2))
    done
    grep -v '^[[:space:]]*$' "$work/answers" > "$work/text"
    [ "$(wc -l < "$work/text")" -ge "$(wc -l < "$work/parts")" ] || { no_answer; return; }
    after="$(wc -c < "$work/text")"
    [ "$after" -lt "$before" ] || {
        echo "$script: the summaries of the parts are as long as the text; give fewer --max-tokens" \
            > "$work/errors"
        return 1
    }
}
