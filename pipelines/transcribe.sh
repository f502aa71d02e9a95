#!/usr/bin/env bash
# Usage: hark transcribe [OPTION]... RECORDING|FOLDER|-...
# Writes down what is said in recordings: to standard output, or to files.
#
# Files are written if a folder, several formats or --output-dir is given: they
# are next to each recording, such as talk.srt and talk.txt. A recording that
# has them already is skipped, so the same command continues a stopped run. A
# file is replaced only with --overwrite.
#
# Options:
#   -m, --model MODEL         Whisper model: a name or a path
#   -l, --language CODE|NAME  spoken language (de, German), or auto [auto]
#   -f, --format F,...        text, srt, vtt, json, ... [text; for files
#                             srt,text]
#   -o, --output-dir DIR      write files there, in a FOLDER's folders
#       --overwrite           transcribe again what has its files already
#       --show-pipe           print the pipe that would run, and run nothing
#   -q, --quiet               print errors only
#   -h, --help                print a short help and exit
#
# Also all options of: whisper-transcribe, audio-decode.
#
# Examples:
#   hark transcribe talk.mp3
#   hark transcribe film.mkv --format srt --language en > film.srt
#   hark transcribe lectures/ --model small
set -uo pipefail
export LC_ALL=C.UTF-8
script="hark transcribe"
here="$(dirname "${BASH_SOURCE[0]}")"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
help_if_asked "$@"
use_tools || exit

format="" output="" overwrite="" show_pipe="" task="${HARK_TASK:-}"
parse() {
    learn_flags whisper-transcribe audio-decode
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            --overwrite) overwrite=yes ;;
            --show-pipe) show_pipe=yes ;;
            --) shift && add_inputs "$@" && break ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                case "$flag" in
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
    mkdir -p -- "$folder" || return 1
    work="$(realpath -- "$(mktemp -d "$folder/.hark.XXXXXX")")" || { work="$first_work"; return 1; }
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
    local recording file number=0 done_now=0 skipped=0 broken=()
    format="${format:-srt,text}" output="${output%/}"
    [[ "$output" != -* ]] || output="./$output"
    set_endings "$format"
    add_recordings "$output" "${inputs[@]}"
    [ ${#recordings[@]} -gt 0 ] || die "$(quoted "${inputs[@]}"): found no recordings"
    name_transcripts
    check_pipe --format "$format" --output-dir "$work" || return
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

parse "$@"
work="$(mktemp -d)" first_work="$work"
trap 'rm -rf "$work" "$first_work"' EXIT
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
