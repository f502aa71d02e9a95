# Sourced by the commands that transcribe recordings: where the tools are and whether they take what
# they are given, which recordings there are, and what their transcripts are called. The commands
# set `script`, the name that messages begin with.
# shellcheck shell=bash disable=SC2154

. "$here/measures.sh"

# The commands choose where the tools write, and how the sound gets to them. An empty variable hides
# what the user's configuration file says.
export HARK_OUTPUT_DIR="" HARK_OUTPUT_NAME="" HARK_OVERWRITE="" HARK_SUMMARY="" HARK_LIVE="" \
    HARK_RAW="" HARK_SAMPLE_RATE="" HARK_CHANNELS="" HARK_MELS=""
# --private is of what the command makes too.
case "${HARK_PRIVATE:-}" in 1 | yes | true | on) umask 077 ;; esac

# use_tools: the tools on the PATH are taken, or those of this installation or source tree.
use_tools() {
    find_tools
    command -v whisper-transcribe > /dev/null && return
    say "whisper-transcribe is not installed; build it with pipelines/demo.sh"
    return 1
}

# check_transcriber OPTION...: a wrong flag, model or language ends a run before its first recording.
# Sets `mels` and `task` to what whisper-transcribe takes, or says what is wrong and returns its status.
check_transcriber() {
    local said status
    said="$(whisper-transcribe --check "$@" 2>&1 < /dev/null)"
    status=$?
    [ "$status" -eq 0 ] || { echo "${said//--model/$model_flag}" >&2 && return "$status"; }
    mels="$(sed -n 's/^mels\t//p' <<< "$said")" task="$(sed -n 's/^task\t//p' <<< "$said")"
}

# still_transcribes OPTION...: whether a tenth of a second of silence goes through the pipe; it has no
# language to detect.
still_transcribes() {
    [ "$task" = detect ] || head -c 3200 /dev/zero | mel --quiet --raw s16le --mels "$mels" |
        whisper-transcribe "$@" > /dev/null
}

# find_recordings FOLDER: the paths of those in it and in its folders, each followed by a NUL; a folder
# that cannot be read is among them, with / at its end. The folder and recordings may be links; one that
# leads nowhere is a recording that cannot be read. In the locale C an expression fits bytes that are
# not UTF-8 too.
find_recordings() {
    LC_ALL=C find -H "$1" -mindepth 1 -regextype posix-extended \
        -type d \( -name '.hark*' -prune -o \
        \( ! -readable -o ! -executable \) -prune -printf '%p/\0' \) -o -iregex \
        '.*\.(wav|mp3|m4a|mp4|m4v|mov|mkv|webm|ogg|oga|opus|flac|aac|aif|aiff|wma|avi|3gp)' \
        \( -xtype f -o -xtype l \) -print0 | LC_ALL=C sort -z
}

model_flag=--model   # of the command, which sets whisper-transcribe's model
endings=()           # of the transcripts: srt, txt
longest_ending=0     # in characters
recordings=()        # all that were asked for, each once
unreadable=()        # folders that could not be searched for more
declare -A target=() # of a recording: the path of its transcripts without their ending

# set_endings FORMAT,...: sets `endings` to what the files of these formats end in, each once. `all`
# stands for all but html.
set_endings() {
    local format ending known="${flag_choices[--format]}"
    local formats="${1//,/ }" all="${known//,/ }"
    [[ ",$1," != *,all,* ]] || formats="${all/ html/} $formats"
    endings=()
    for format in $formats; do
        [[ ",$known," == *",$format,"* ]] ||
            wrong "--format: unknown format '$format' (expected one of ${known//,/, })"
        case "$format" in
            all) continue ;;
            text) ending=txt ;;
            audacity) ending=audacity.txt ;;
            *) ending="$format" ;;
        esac
        [[ " ${endings[*]} " == *" $ending "* ]] || endings+=("$ending")
    done
    [ ${#endings[@]} -gt 0 ] || wrong "--format: expected at least one format"
    for format in "${endings[@]}"; do
        [ ${#format} -le "$longest_ending" ] || longest_ending=${#format}
    done
}

# add_recordings OUTPUT INPUT...: the recordings of files and folders. Their transcripts are within
# the folder OUTPUT, or if that is empty next to each recording.
add_recordings() {
    local output="$1" input path
    shift
    for input in "$@"; do
        [[ "$input" != -* ]] || input="./$input"
        if [ -d "$input" ]; then
            [ -r "$input" ] && [ -x "$input" ] || die "$input: this folder cannot be read"
            [[ "$input" == */ ]] || input="$input/"
            while IFS= read -r -d '' path; do
                [[ "$path" != */ ]] || {
                    say "$path: this folder cannot be read"
                    unreadable+=("$path")
                    continue
                }
                add_recording "$path" "${output:+$output/${path#"$input"}}"
            done < <(find_recordings "$input")
        else
            add_recording "$input" "${output:+$output/${input##*/}}"
        fi
    done
}

# add_recording PATH [NAME]: a recording whose transcripts are called by NAME, or if that is empty
# by the recording's own.
add_recording() {
    [ -z "${target[$1]:-}" ] || return 0
    target[$1]="${2:-$1}"
    recordings+=("$1")
}

# name_transcripts [FILE]: sets `target` to what the transcripts add .srt or .txt to: a path without
# its ending, or the whole path if another recording differs from it in the ending alone (a.mp3,
# a.wav). Two recordings that would write the same file, or FILE, end the run.
name_transcripts() {
    local path stem file name number
    local -A users=() whole=() owner=()
    [ $# -eq 0 ] || owner[$1]="the list of failures"
    for path in "${recordings[@]}"; do
        set_stem "${target[$path]}"
        whole[${target[$path]}]=1
        users[$stem]=$((${users[$stem]:-0} + 1))
    done
    for path in "${recordings[@]}"; do
        set_stem "${target[$path]}"
        [ "${users[$stem]}" -gt 1 ] || {
            [ "$stem" != "${target[$path]}" ] && [ -n "${whole[$stem]:-}" ]
        } || target[$path]="$stem"
        name="${target[$path]}" number=1
        shorten_target "$path" ""
        while first_file owned "$path"; do
            # Names that are equal where they are cut get numbers.
            [ "$name" != "${target[$path]}" ] ||
                die "$path: would write $file, as would ${owner[$file]}"
            number=$((number + 1))
            target[$path]="$name"
            shorten_target "$path" "-$number"
        done
        for file in "${endings[@]}"; do owner[${target[$path]}.$file]="$path"; done
    done
}

# owned PATH: another recording writes it (`owner`).
owned() { [ -n "${owner[$1]:-}" ]; }

# shorten_target RECORDING SUFFIX: the names of its files fit a file system, in 255 bytes. A name that
# is cut ends in SUFFIX.
shorten_target() {
    local name="${target[$1]##*/}" folder room=$((255 - longest_ending - 1 - ${#2}))
    [ $((4 * ${#name})) -gt "$room" ] || return 0 # a character has four bytes at most
    [ "$(printf '%s' "$name" | wc -c)" -gt $((room + ${#2})) ] || return 0
    folder="${target[$1]%"$name"}"
    while [ "$(printf '%s' "$name" | wc -c)" -gt "$room" ]; do name="${name%?}"; done
    target[$1]="$folder$name$2"
}

# set_stem PATH: sets `stem` to the path without its ending. A name that begins with its only dot
# has none.
set_stem() {
    stem="$1"
    [[ "${1##*/}" != ?*.* ]] || stem="${1%.*}"
}

# finished RECORDING: all its transcripts are there, none older than itself.
finished() {
    local ending file
    for ending in "${endings[@]}"; do
        file="${target[$1]}.$ending"
        [ -f "$file" ] && ! [ "$file" -ot "$1" ] || return 1
    done
}

# exists PATH: as anything, a link to nothing too.
exists() { [ -e "$1" ] || [ -L "$1" ]; }

# first_file TEST RECORDING: sets `file` to the first of its transcripts that passes, or returns 1.
first_file() {
    local ending
    for ending in "${endings[@]}"; do
        file="${target[$2]}.$ending"
        ! "$1" "$file" || return 0
    done
    return 1
}

# The pipe of transcribe, batch, ask and summarize: `inputs` through audio-decode with the options
# `decode`, and whisper-transcribe with the options `transcriber`, whose --task is `task` if that is
# detect.
# `transcriber_measures` are options of the run alone, not of the one that checks the options.
inputs=() decode=() transcriber=() transcriber_measures=() quiet=() task=""

# add_inputs INPUT...: none looks like a flag.
add_inputs() {
    local input
    for input in "$@"; do
        [[ "$input" != -?* ]] || input="./$input"
        inputs+=("$input")
    done
}

# pass_flag: the flag that take_flag found goes to its tool.
pass_flag() {
    [ "$flag" != --private ] || umask 077
    if [ "$owner" = audio-decode ]; then decode+=("${words[@]}"); else transcriber+=("${words[@]}"); fi
}

# check_pipe OPTION...: both tools take their options, and stdin is no terminal; sets `mels`.
check_pipe() {
    local said input
    for input in "${inputs[@]}"; do
        [ "$input" != - ] || [ ! -t 0 ] || [ -n "${show_pipe:-}" ] ||
            wrong "stdin is a terminal, expected a recording through a pipe or from a file"
    done
    said="$(audio-decode "${decode[@]}" /dev/null 2>&1 > /dev/null)"
    [ $? -ne 2 ] || { echo "$said" >&2 && return 2; }
    check_transcriber "${transcriber[@]}" "$@"
}

# pipe_of OPTION...: the pipe, as a shell reads it.
pipe_of() {
    local mel=(mel)
    [ "$mels" = 80 ] || mel+=(--mels "$mels")
    show_stages "$(quoted audio-decode "${decode[@]}" "${quiet[@]}" "${inputs[@]}")" \
        "$(quoted "${mel[@]}" "${quiet[@]}")" \
        "$(quoted whisper-transcribe "${transcriber[@]}" "${quiet[@]}" "$@")"
}

# run_pipe OPTION...: runs it, with files in `work`. Returns the status of the last stage that failed.
run_pipe() {
    local status
    : > "$work/messages"
    : > "$work/summary"
    run_group stages "$@"
    status=$?
    show_messages "$work/messages" "$work/summary"
    return "$status"
}

stages() {
    measured audio-decode "${decode[@]}" "${quiet[@]}" "${inputs[@]}" 2>> "$work/messages" |
        measured mel --mels "$mels" "${quiet[@]}" 2>> "$work/messages" |
        last_stage "${transcriber[@]}" "${transcriber_measures[@]}" "${quiet[@]}" "$@"
}

# last_stage OPTION...: whisper-transcribe, and `work`/summary has its errors of recordings.
last_stage() {
    local status
    if [ "$task" != detect ]; then
        measured whisper-transcribe --summary "$work/summary" "$@"
        return
    fi
    # It writes no summary then.
    measured whisper-transcribe "$@" 2> "$work/errors"
    status=$?
    cat "$work/errors" >&2
    sed 's/^[a-z-]*: /\t\t\t\t/' "$work/errors" > "$work/summary"
    return "$status"
}

# run_group COMMAND...: runs it in a process group of its own, which end_groups ends whole. Returns
# its status.
run_group() {
    set -m
    "$@" <&0 &
    set +m
    wait "$!" 2> /dev/null
}

# end_groups STATUS: ends what run_group runs, and then the command.
end_groups() {
    local group
    trap '' HUP INT TERM
    for group in $(jobs -p); do kill -TERM -- "-$group" 2> /dev/null; done
    wait 2> /dev/null
    exit "$1"
}

end_on_signals() {
    trap 'end_groups 129' HUP
    trap 'end_groups 130' INT
    trap 'end_groups 143' TERM
}

# show_messages FILE SUMMARY: prints what the stages before the last one have said, which is in FILE,
# without the errors of recordings: they travel in the stream, and the last stage has said them. The
# paths are absolute: awk takes a relative one that has = as an assignment.
show_messages() {
    awk -F '\t' 'FILENAME == ARGV[1] { if ($5 != "") said[$5]; next }
        { message = $0; sub(/^[a-z-]+: /, "", message) }
        !(message in said)' "$2" "$1" >&2
}
