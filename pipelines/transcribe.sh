#!/usr/bin/env bash
# Usage: hark transcribe [OPTION]... RECORDING|FOLDER|-...
# Writes down what is said in recordings: to standard output, or to files.
#
# Files are written if a folder, several formats or --output-dir is given: they
# are next to each recording, such as talk.srt and talk.txt. A recording that
# has them already is skipped, so the same command continues a stopped run. A
# file is replaced only with --overwrite.
#
# With --server the text is the same, on standard output; only --model,
# --language, --format (text, srt, vtt), --task, --initial-prompt, --hotwords,
# --temperature and --vad can be given.
#
# Options:
#   -m, --model MODEL         Whisper model: a name or a path
#   -l, --language CODE|NAME  spoken language (de, German), or auto [auto]
#   -f, --format F,...        text, srt, vtt, json, ... [text; for files
#                             srt,text]
#   -o, --output-dir DIR      write files there, in a FOLDER's folders
#       --overwrite           transcribe again what has its files already
#       --server URL          ask a hark-serve that runs: http://HOST:PORT or
#                             unix:PATH
#       --api-key-file FILE   the server's key; else the variable HARK_API_KEY
#       --show-pipe           print the pipe that would run, and run nothing
#       --profile FILE        where the time went, as a trace for Perfetto
#   -q, --quiet               print errors only
#   -h, --help                print a short help and exit
#
# Also all options of: whisper-transcribe, audio-decode.
#
# Examples:
#   hark transcribe talk.mp3
#   hark transcribe film.mkv --format srt --language en > film.srt
#   hark transcribe lectures/ --model small
#   hark transcribe --server http://127.0.0.1:8080 --model small talk.mp3
set -uo pipefail
export LC_ALL=C.UTF-8
script="hark transcribe"
here="$(dirname "${BASH_SOURCE[0]}")"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
. "$here/server.sh"
help_if_asked "$@"
use_tools || exit

format="" output="" overwrite="" show_pipe="" task="${HARK_TASK:-}"
parse() {
    learn_flags whisper-transcribe audio-decode
    learn_server_flags
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            --overwrite) overwrite=yes ;;
            --show-pipe) show_pipe=yes ;;
            --) shift && add_inputs "$@" && break ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                note_flag || note_measure transcriber_measures || case "$flag" in
                    --format) format="$value" ;;
                    --output-dir) output="$value" ;;
                    --summary | --live | --output-name) wrong "$flag: not an option of this command" ;;
                    --task) task="$value" && [ "$task" = detect ] || pass_flag ;;
                    --quiet) quiet=(--quiet) ;;
                    *) pass_flag ;;
                esac
                ;;
            *) add_inputs "$1" ;;
        esac
        shift
    done
    [ ${#inputs[@]} -gt 0 ] || wrong "expected a recording, a folder or - for standard input"
    [ -n "$server" ] || [ -z "$key_file" ] || wrong "--api-key-file: needs --server"
}

writes_files() {
    local input
    [ -z "$output" ] && [[ "$format" != *,* && "$format" != all ]] || return 0
    for input in "${inputs[@]}"; do
        [ ! -d "$input" ] || return 0
    done
    return 1
}

transcribe_to_stdout() {
    local options=()
    [ -z "$format" ] || options=(--format "$format")
    [ ${#inputs[@]} -eq 1 ] || [[ "$format" =~ ^(|text|md|json|jsonl)$ ]] || wrong "--format $format:" \
        "standard output holds one recording, got ${#inputs[@]}; give --output-dir DIR"
    [ "$task" != detect ] || options+=(--task detect)
    check_pipe "${options[@]}" || return
    [ -z "$show_pipe" ] || { pipe_of "${options[@]}"; return; }
    run_pipe "${options[@]}"
}

# publish RECORDING: its transcripts get their names, all of them or none. Channels have files of
# their own.
publish() {
    local file name
    for file in "$work/out"/t.*; do
        name="${target[$1]}${file#"$work/out/t"}"
        [ -e "$file" ] || return 1
        [ -n "$overwrite" ] || ! exists "$name" || {
            say "$name: exists; use --overwrite or --output-dir"
            return 1
        }
    done
    for file in "$work/out"/t.*; do
        mv -fT "$file" "${target[$1]}${file#"$work/out/t"}" || return 1
    done
}

# transcribe_one RECORDING NUMBER: to files. Its work folder is on their file system, so that they
# appear whole.
transcribe_one() {
    local folder="${target[$1]%/*}" began=$EPOCHREALTIME seconds status
    [[ "${target[$1]}" == */* ]] || folder=.
    make_folder "$folder" || return 1
    work="$(mktemp -d "$(realpath -- "$folder")/.hark.XXXXXX" 2> /dev/null)" || {
        work="$first_work"
        say "$folder: cannot write into this folder; give --output-dir DIR"
        return 1
    }
    inputs=("$1")
    run_pipe --format "$format" --output-dir "$work/out" --output-name t
    status=$?
    # A recording that lacks a part has transcripts too.
    publish "$1" && [ "$status" -eq 0 ] || return 1
    seconds="$(awk -F '\t' 'NR == 2 { print $4 }' "$work/summary")"
    [ ${#quiet[@]} -gt 0 ] || say "$2 of ${#recordings[@]}: $1 -> ${target[$1]##*/}.$(
        IFS=,
        echo "${endings[*]}"
    ) ($(awk "BEGIN { printf \"%.1f s of audio in %.1f s\", $seconds, $EPOCHREALTIME - $began }"))"
}

transcribe_to_files() {
    local recording file number=0 done_now=0 skipped=0 broken
    format="${format:-srt,text}" output="${output%/}"
    [[ "$output" != -* ]] || output="./$output"
    set_endings "$format"
    add_recordings "$output" "${inputs[@]}"
    [ ${#recordings[@]} -gt 0 ] || die "$(quoted "${inputs[@]}"): found no recordings"
    name_transcripts
    broken=("${unreadable[@]}")
    check_pipe --format "$format" --output-dir "$work" || return
    if [ -n "$output" ] && [ -z "$show_pipe" ]; then
        make_folder "$output" || return
        [ -w "$output" ] || die "$output: cannot write into this folder"
    fi
    for recording in "${recordings[@]}"; do
        number=$((number + 1))
        if [ -z "$overwrite" ] && finished "$recording"; then
            skipped=$((skipped + 1))
        elif [ -z "$overwrite" ] && first_file exists "$recording"; then
            say "$file: exists, and other transcripts of $recording are missing or older than it;" \
                "use --overwrite or --output-dir"
            broken+=("$recording")
        elif [ -n "$show_pipe" ]; then
            inputs=("$recording")
            show_files "$recording"
        elif transcribe_one "$recording" "$number"; then
            done_now=$((done_now + 1))
        else
            broken+=("$recording")
        fi
        [ "$work" = "$first_work" ] || { rm -rf "$work" && work="$first_work"; }
    done
    [ -n "$show_pipe" ] || [ ${#quiet[@]} -gt 0 ] ||
        say "$done_now transcribed, $skipped already there, ${#broken[@]} failed"
    for recording in "${broken[@]}"; do say "failed: $recording"; done
    [ ${#broken[@]} -eq 0 ]
}

# show_files RECORDING: the pipe that writes its files.
show_files() {
    local name="${target[$1]}" folder=. stem template=()
    [[ "$name" != */* ]] || folder="${name%/*}"
    set_stem "$1"
    [ "${name##*/}" = "${stem##*/}" ] || template=(--output-name '{name}')
    if [ ${#endings[@]} -eq 1 ]; then
        printf '%s > %s\n' "$(pipe_of --format "$format")" "$(quoted "$name.${endings[0]}")"
    else
        pipe_of --format "$format" --output-dir "$folder" "${template[@]}"
    fi
}

# set_server_fields: what the flags are in the server's form: `wanted_model`, `server_task` and `fields`.
set_server_fields() {
    local i flag value
    for ((i = 0; i < ${#given[@]}; i += 2)); do
        flag="${given[i]}" value="${given[i + 1]}"
        case "$flag" in
            --server | --api-key-file | --quiet) ;;
            --model) wanted_model="$value" ;;
            --format)
                [[ "$value" =~ ^(text|srt|vtt)$ ]] ||
                    wrong "--format: expected text, srt or vtt with --server, got '$value'"
                fields+=("response_format=$value")
                ;;
            --task)
                case "$value" in
                    transcribe) server_task=transcriptions ;;
                    translate) server_task=translations ;;
                    *) wrong "--task: expected transcribe or translate with --server, got '$value'" ;;
                esac
                ;;
            --language) [ "$value" = auto ] || fields+=("language=$value") ;;
            --initial-prompt) fields+=("prompt=$value") ;;
            --hotwords) fields+=("hotwords=$value") ;;
            --temperature) fields+=("temperature=$value") ;;
            --vad) fields+=(vad_filter=true) ;;
            *) refuse_with_server "$flag" ;;
        esac
    done
}

# transcribe_by_server: to standard output, an empty line between texts.
transcribe_by_server() {
    local input wanted_model="" server_task=transcriptions fields=(response_format=text)
    local has_text="" status=0
    set_server_fields
    [ -z "$overwrite" ] || refuse_with_server --overwrite
    [ -z "$show_pipe" ] || refuse_with_server --show-pipe
    [ ${#inputs[@]} -eq 1 ] || [[ "$format" =~ ^(|text)$ ]] ||
        wrong "--format $format: standard output holds one recording, got ${#inputs[@]}"
    for input in "${inputs[@]}"; do
        [ ! -d "$input" ] || wrong "--server: expected recordings, got the folder '$input'"
    done
    use_server
    choose_model "$wanted_model" --model /v1/audio/transcriptions
    for input in "${inputs[@]}"; do
        request_transcript "$input" "$server_task" "model=$model" "${fields[@]}" || {
            say "$input: $problem"
            status=1
            continue
        }
        [ -s "$work/answer" ] || continue
        [ -z "$has_text" ] || echo
        has_text=yes
        cat "$work/answer" || return
    done
    return "$status"
}

parse "$@"
[ -z "$server" ] || { transcribe_by_server; exit; }
work="$(mktemp -d)" first_work="$work"
trap 'status=$?; rm -rf "$work" "$first_work"; end_profile "$status"' EXIT
begin_profile
end_on_signals
if writes_files; then
    [ "$task" != detect ] || wrong "--task detect: writes to standard output; give recordings and" \
        "leave out --output-dir"
    for input in "${inputs[@]}"; do
        [ "$input" != - ] || wrong "-: files are named after recordings; give one format and no folder"
    done
    transcribe_to_files
else
    transcribe_to_stdout
fi
