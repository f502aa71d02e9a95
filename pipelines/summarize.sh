#!/usr/bin/env bash
# Usage: hark summarize [OPTION]... FOLDER|FILE...
# Writes the minutes of recordings and transcripts, next to each of them.
#
# talk.mp3, or the transcript talk.txt, gets talk.minutes.md. A recording that
# has a transcript talk.txt next to it is not transcribed again. What has its
# minutes is skipped: the same command continues after a stop. A text that does
# not fit the model's context is summarised in parts, and then the summaries
# are. After a stop in the middle of a text the transcript of its recording and
# the summaries of parts are in ~/.cache/hark/answers. What fails is named, and
# the rest is done.
#
# Options:
#   -m, --model MODEL          language model: a name or a path
#       --whisper-model MODEL  Whisper model that transcribes the recording
#   -l, --language CODE|NAME   spoken language (de, German), or auto [auto]
#   -p, --prompt TEXT          what to write of a text, in place of minutes
#       --max-tokens N         most tokens per summary [600]
#       --rewrite              write all minutes again
#       --show-pipe            print the pipe that would run, and run nothing
#   -h, --help                 print a short help and exit
#
# Also all options of: gpt-generate.
#
# Examples:
#   hark summarize meetings --model ./Qwen2.5-7B-Instruct --chat
#   hark summarize talk.txt --chat --prompt 'List the open tasks.'
set -uo pipefail
script="hark summarize"
here="$(dirname "${BASH_SOURCE[0]}")"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
. "$here/generate.sh"
help_if_asked "$@"

# One answer, as text, whatever the user's defaults are.
export HARK_GPT_GENERATE_N="" HARK_GPT_GENERATE_FORMAT="" HARK_GPT_GENERATE_ECHO="" \
    HARK_GPT_GENERATE_CONVERSATION="" HARK_GPT_GENERATE_SHOW_PROMPT=""
show_pipe="" rewrite="" task_text=""
endings=(minutes.md) longest_ending=10
failed=0 written=0 there=0 number=0
minutes="Write the minutes of this text, in its language: the topic, the main points, decisions and open tasks."
part="Summarise this part of a longer text in its language. Keep names, figures, decisions and open tasks."

parse() {
    learn_generator
    flag_name[--rewrite]=--rewrite
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            --show-pipe) show_pipe=yes ;;
            --rewrite) rewrite=yes ;;
            --) shift && add_inputs "$@" && break ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                case "$flag" in
                    --prompt) task_text="$value" ;;
                    --conversation | --input-format | --format | --show-prompt | --echo | --n)
                        wrong "$flag: not an option of this command" ;;
                    *) note_measure generator_measures || pass_generator_flag ;;
                esac
                ;;
            *) add_inputs "$1" ;;
        esac
        shift
    done
    [ ${#inputs[@]} -gt 0 ] || wrong "expected a folder or a file"
    [ -n "${generator_flag[--max-tokens]:-}" ] || generator+=(--max-tokens 600)
    ! is_chat || [ -n "${generator_flag[--reasoning]:-}" ] || generator+=(--reasoning hide)
}

# collect: the recordings of the inputs, then the transcripts that are not of one of them.
collect() {
    local input path others=()
    local -A transcripts=()
    add_recordings "" "${inputs[@]}"
    for path in "${recordings[@]}"; do
        is_text "$path" || transcripts["$path.txt"]=yes transcripts["${path%.*}.txt"]=yes
    done
    for path in "${recordings[@]}"; do  # those of a shell's pattern have their transcripts too
        [ -n "${transcripts[$path]:-}" ] || others+=("$path")
    done
    recordings=("${others[@]}")
    for input in "${inputs[@]}"; do
        [ -d "$input" ] || continue
        while IFS= read -r -d '' path; do
            [ -n "${transcripts[$path]:-}" ] || add_recording "$path"
        done < <(LC_ALL=C find -H "${input%/}/" -mindepth 1 -type d \( -name '.hark*' -o \
            ! -readable -o ! -executable \) -prune -o -name '*.txt' ! -name '*.audacity.txt' \
            -xtype f -print0 | LC_ALL=C sort -z)
    done
    failed=${#unreadable[@]}
    [ ${#recordings[@]} -gt 0 ] || die "$(quoted "${inputs[@]:0:1}"): found no recordings and no transcripts"
    name_transcripts
}

# set_text PATH: sets `text` to its transcript; returns 1 if it has none that is not older.
set_text() {
    text="$1"
    is_text "$1" || text="${target[$1]}.txt"
    [ -f "$text" ] && ! [ "$text" -ot "$1" ]
}

# text_of PATH: writes what is said to `work`/text, a sentence or segment per line.
text_of() {
    local text
    if set_text "$1"; then
        cat -- "$text" > "$work/said" || return
    else
        inputs=()
        add_inputs "$1"
        transcribe || return
    fi
    sed 's/\([.?!]\) /\1\n/g' "$work/said" | grep -v '^[[:space:]]*$' > "$work/text"
    [ -s "$work/text" ] || { say "$1: nothing is said"; return 1; }
}

# minutes_of_text: the answer to `work`/text, in `work`/minutes. An empty one is an error.
minutes_of_text() {
    one_line "$work/text" && generate "${task_text:-$minutes}" < "$work/line" > "$work/minutes" || return
    grep -q '[^[:space:]]' "$work/minutes" || no_answer
}

# summarize PATH: its minutes get their name once they are whole.
summarize() {
    local file="${target[$1]}.minutes.md" folder whole line why
    folder="$(dirname -- "$file")"
    [ -w "$folder" ] || { say "$folder: cannot write into this folder"; return 1; }
    keep "$1" "${task_text:-$minutes}"
    text_of "$1" || return
    until minutes_of_text; do
        too_long && shorten "$1" "$part" && continue
        # One line stands for those of all parts.
        IFS= read -r line < "$work/errors"
        line="${line#*: }"
        say "$1: ${line#stdin: line [0-9]*: }"
        return 1
    done
    cat "$work/errors" >&2
    # Next to its final name first: a rename is whole or not at all.
    whole="$folder/.hark-minutes.$$"
    why="$({ LC_ALL=C cp -- "$work/minutes" "$whole" && LC_ALL=C mv -fT -- "$whole" "$file"; } 2>&1)" && {
        drop_kept
        return
    }
    rm -f -- "$whole"
    say "$file: cannot write: ${why##*: }"
    return 1
}

# show_pipe_of PATH: of a recording, or of a transcript.
show_pipe_of() {
    local last
    frame "${task_text:-$minutes}"
    last="$(quoted gpt-generate "${generator[@]}" --prompt "$prompt") > $(quoted "${target[$1]}.minutes.md")"
    inputs=()
    add_inputs "$1"
    if set_text "$1"; then
        show_stages "tr '\\n' ' ' < $(quoted "$text")" "$last"
    else
        show_stages "$(pipe_of)" "tr '\\n' ' '" "$last"
    fi
}

use_tools || exit
parse "$@"
collect
todo=()
for path in "${recordings[@]}"; do
    file="${target[$path]}.minutes.md"
    if [ -z "$rewrite" ] && finished "$path"; then
        there=$((there + 1))
    elif [ -z "$rewrite" ] && exists "$file"; then
        say "$path: $file exists and is older; use --rewrite"
        failed=$((failed + 1))
    else
        todo+=("$path")
    fi
done
[ ${#todo[@]} -eq 0 ] || [ -n "$show_pipe" ] || check_generator || exit
for path in "${todo[@]}"; do
    set_text "$path" || { check_pipe || exit && break; }
done
if [ -n "$show_pipe" ]; then
    for path in "${todo[@]}"; do show_pipe_of "$path"; done
    exit
fi
work="$(mktemp -d)"
errors="$work/errors"
trap 'status=$?; rm -rf "$work"; end_profile "$status"' EXIT
begin_profile
end_on_signals
for path in "${todo[@]}"; do
    number=$((number + 1))
    summarize "$path" || { failed=$((failed + 1)) && continue; }
    written=$((written + 1))
    [ -n "${generator_flag[--quiet]:-}" ] ||
        say "$number of ${#todo[@]}: $path -> ${target[$path]##*/}.minutes.md"
done
say "$written written, $there already there, $failed failed"
[ "$failed" -eq 0 ]
