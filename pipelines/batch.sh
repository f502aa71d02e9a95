#!/usr/bin/env bash
# Many recordings on a rented machine: one pipeline that keeps its GPU busy, and that can be killed
# and run again at any time. For a folder at home, beside whose recordings the transcripts belong,
# transcribe.sh is simpler.
#
#   usage: pipelines/batch.sh --output DIR [OPTION]... [FOLDER|FILE]... [-- OPTION...]
#          pipelines/batch.sh --output out --price 3.5 ~/lectures -- --model ~/models/large-v3/
#          find /data -name '*.wav' | pipelines/batch.sh --output out --list - -- --model demo
#
#   --output DIR    where the transcripts go: FOLDER/a/b.mp3 becomes DIR/a/b.srt, a FILE DIR/NAME.srt
#   --list FILE     reads more folders and files from FILE, a line each; - is standard input
#   --format F,...  what to write, as whisper-transcribe has it [srt,text]
#   --retry         tries again what failed in the run before
#   --price DOLLARS that an hour of the machine costs: says how much audio a dollar transcribes
#   --shard N       recordings that one audio-decode is given [200]
#   --jobs N        recordings that it decodes at a time [its own choice]
#   -- OPTION...    whisper-transcribe's; --batch 128 is 1.6 times as fast on a large GPU with large-v3
#
# A recording is finished when all its transcripts are there, none older than itself; each gets its
# name only when it is whole. Finished ones are skipped, so after a kill or the loss of the machine
# the same command goes on. Those that failed are in DIR/failed.tsv, a line each: the path, a tab,
# the error; without --retry they are skipped until they change. SIGTERM, SIGINT or SIGHUP stops at
# once. Recordings that differ in their ending alone keep it (a.mp3.srt, a.wav.srt); others that
# would write the same file, and paths that have a tab or a newline or are not UTF-8, are refused.
# The exit status is 0 where all are done, 1 where something failed, 2 where the command line was
# wrong, 128 and the signal's number where one came.
#
#   audio-decode SHARD, audio-decode SHARD, ... -> mel -> whisper-transcribe -> DIR/.hark -> DIR
set -uo pipefail
export LC_ALL=C.UTF-8
script=batch.sh
. "$(dirname "${BASH_SOURCE[0]}")/recordings.sh"
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"

say() { echo "$script: $*" >&2; }
die() { say "$@"; exit 1; }
wrong() { say "$*; try $0 --help"; exit 2; }

output="" list="" formats=srt,text price="" shard=200 jobs="" retry="" inputs=() options=()
endings=()                # of the transcripts: srt, txt
recordings=()             # all that were asked for
declare -A target=()      # of a recording: its transcripts' path without the format's ending
declare -A state=()       # of a recording: there, transcribed, failed, or not set
declare -A reason=()      # of one that failed
todo=()                   # those without a state
transcribed=0             # in this run,
hundredths=0              # of a second of audio
next_word=60              # at which of its seconds it says how far it is
pipeline="" stopped=""    # its process group; the exit status of a run that was stopped

parse() {
    while [ $# -gt 0 ]; do
        case "$1" in
            --output | --list | --format | --price | --shard | --jobs)
                [ $# -ge 2 ] || wrong "$1: expected a value" ;;&
            --output) output="$2" && shift ;;
            --list) list="$2" && shift ;;
            --format) formats="$2" && shift ;;
            --price) price="$2" && shift ;;
            --shard) shard="$2" && shift ;;
            --jobs) jobs="$2" && shift ;;
            --retry) retry=yes ;;
            --) shift && options=("$@") && break ;;
            --help | -h) show_help ;;
            -*) wrong "'$1' is not one of its options; whisper-transcribe's go behind --" ;;
            *) inputs+=("$1") ;;
        esac
        shift
    done
    [ -n "$output" ] || wrong "expected --output DIR"
    [ ${#inputs[@]} -gt 0 ] || [ -n "$list" ] || wrong "expected a folder, a file or --list FILE"
    [[ "$shard" =~ ^[1-9][0-9]{0,5}$ ]] || wrong "--shard: expected 1 or more, found '$shard'"
    [[ "$jobs" =~ ^([1-9][0-9]{0,2})?$ ]] || wrong "--jobs: expected 1 or more, found '$jobs'"
    [[ "$price" =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)?$ && "$price" != [0.] && ! "$price" =~ ^0+\.?0*$ ]] ||
        wrong "--price: expected dollars an hour, found '$price'"
    local format
    for format in ${formats//,/ }; do
        case "$format" in
            text) endings+=(txt) ;;
            srt | vtt | ass | tsv | csv | json | jsonl) endings+=("$format") ;;
            audacity) endings+=(audacity.txt) ;;
            *) wrong "--format: expected text, srt, vtt, ass, tsv, csv, audacity, json or jsonl, found '$format'" ;;
        esac
    done
    [ ${#endings[@]} -gt 0 ] || wrong "--format: expected at least one"
}

# add PATH NAME: a recording whose transcripts are called by NAME within the output folder.
add() {
    [[ "$1" != *[$'\t\n']* ]] || die "${1@Q}: expected a path without tab and newline"
    [ -z "${target[$1]:-}" ] || return 0
    target[$1]="$output/$2"
    recordings+=("$1")
}

add_input() {
    local input="$1" path
    [[ "$input" != -* ]] || input="./$input"
    if [ ! -d "$input" ]; then
        add "$input" "${input##*/}"
        return
    fi
    [[ "$input" == */ ]] || input="$input/"
    while IFS= read -r -d '' path; do
        add "$path" "${path#"$input"}"
    done < <(find_recordings "$input")
}

# All recordings, and what each one's transcripts are called.
collect() {
    local line path names=() bad
    for line in "${inputs[@]}"; do
        add_input "$line"
    done
    if [ -n "$list" ]; then
        [ "$list" != - ] || list=/dev/stdin
        [ -r "$list" ] || die "$list: cannot read this list"
        while IFS= read -r line || [ -n "$line" ]; do
            [ -z "$line" ] || add_input "$line"
        done < "$list"
    fi
    [ ${#recordings[@]} -gt 0 ] || die "no recordings there"
    bad="$(printf '%s\n' "${recordings[@]}" | grep -axvm1 '.*')"
    [ -z "$bad" ] || die "$bad: expected a path in UTF-8"

    local -A owner=([$output/failed.tsv]="the list of failures")
    for path in "${recordings[@]}"; do names+=("${target[$path]}"); done
    name_transcripts "${names[@]}"
    for path in "${recordings[@]}"; do
        target[$path]="${stems[${target[$path]}]}"
        for line in "${endings[@]}"; do
            line="${target[$path]}.$line"
            [ -z "${owner[$line]:-}" ] || die "$path: would write $line, as would ${owner[$line]}"
            owner[$line]="$path"
        done
    done
}

# One run at a time works on an output folder; what a killed one left half-written goes.
lock() {
    mkdir -p "$output/.hark" || exit 1
    exec {lock}> "$output/.hark/lock" || exit 1
    flock -n "$lock" || die "$output: another batch.sh is at work on it"
    rm -rf "$output"/.hark/work.*
    work="$(mktemp -d "$output/.hark/work.XXXXXX")" || exit 1
    trap 'rm -rf "$work"' EXIT
    mkfifo "$work/summary" || exit 1
}

finished() {
    local ending file
    for ending in "${endings[@]}"; do
        file="${target[$1]}.$ending"
        [ -f "$file" ] && ! [ "$file" -ot "$1" ] || return 1
    done
}

# What the runs before have done with each recording.
recall() {
    local path error failures="$output/failed.tsv"
    if [ -z "$retry" ] && [ -f "$failures" ]; then
        while IFS=$'\t' read -r path error; do
            # What has changed since may have been mended.
            [ -z "${target[$path]:-}" ] || [ "$failures" -ot "$path" ] ||
                state[$path]=failed reason[$path]="$error"
        done < <(cat "$failures")
    fi
    for path in "${recordings[@]}"; do
        if finished "$path"; then state[$path]=there; fi
    done
    list_todo
}

list_todo() {
    local path
    todo=()
    for path in "${recordings[@]}"; do
        [ -n "${state[$path]:-}" ] || todo+=("$path")
    done
}

# feed PATH...: the audio of all, a shard after another, so that the transcriber never waits for
# the next one to begin. A recording that is broken is told of in the stream.
feed() {
    local at status=0
    for ((at = 1; at <= $#; at += shard)); do
        audio-decode ${jobs:+--jobs "$jobs"} "${@:at:shard}"
        status=$?
        [ "$status" -le 1 ] || return "$status"
    done
}

# publish FILE PATH: the transcripts of a recording get their names.
publish() {
    local stem="${target[$2]}" ending
    [ -d "${stem%/*}" ] || mkdir -p "${stem%/*}" || return 1
    for ending in "${endings[@]}"; do
        mv -fT "$work/$1.$ending" "$stem.$ending" || return 1
    done
}

# Takes whisper-transcribe's summary from stdin, a line as each recording ends.
settle() {
    local path file length error ending
    while IFS=$'\t' read -r path _ file length error; do
        [ -n "${target[$path]:-}" ] || continue
        if [ -n "$error" ]; then
            state[$path]=failed reason[$path]="${error#"$path: "}"
            for ending in "${endings[@]}"; do rm -f "$work/$file.$ending"; done
        elif publish "$file" "$path"; then
            state[$path]=transcribed
            transcribed=$((transcribed + 1))
            hundredths=$((hundredths + 10#${length/./}))
        else
            stop 1
        fi
        [ "$SECONDS" -lt "$next_word" ] || {
            say "$transcribed of ${#recordings[@]} transcribed in this run so far"
            next_word=$((SECONDS + 60))
        }
    done
}

# transcribe PATH...: a pipeline in a process group of its own, which is how it can be stopped
# whole. Returns when all its processes have ended, `statuses` telling how.
transcribe() {
    local both lines out
    # Both ends are opened here, or the one would wait for the other.
    # shellcheck disable=SC2094
    exec {both}<> "$work/summary" {lines}< "$work/summary" {out}> "$work/summary" {both}>&-
    rm -f "$work/statuses"
    set -m
    {
        feed "$@" | mel --mels "$mels" | whisper-transcribe --format "$formats" \
            --output-dir "$work" --summary /dev/stdout "${options[@]}"
        echo "${PIPESTATUS[*]}" > "$work/statuses"
    } < /dev/null >&"$out" {out}>&- {lines}<&- {lock}>&- &
    pipeline=$!
    set +m
    exec {out}>&-
    [ -z "$stopped" ] || kill -TERM -- "-$pipeline"
    settle <&"$lines"
    settle <&"$lines"  # what is left where a signal ended the first
    exec {lines}<&-
    wait "$pipeline" 2> /dev/null
    pipeline=""
    statuses="exit statuses of audio-decode, mel, whisper-transcribe: $(cat "$work/statuses" \
        2> /dev/null || echo none)"
}

# stop STATUS: ends the pipeline, and with it the run.
stop() {
    stopped="$1"
    [ -z "$pipeline" ] || kill -TERM -- "-$pipeline" 2> /dev/null
}

# A pipeline that broke in the middle has told of everything before the break. The recording behind
# it may be why: it gets a pipeline of its own, and fails if that breaks while a tenth of a second
# of silence passes. So each round settles one at least.
transcribe_all() {
    local suspect
    check_transcriber 1 --format "$formats" --output-dir "$work" "${options[@]}" || exit
    while [ ${#todo[@]} -gt 0 ] && [ -z "$stopped" ]; do
        transcribe "${todo[@]}"
        list_todo
        [ ${#todo[@]} -gt 0 ] || break
        [ -z "$stopped" ] || break
        suspect="${todo[0]}"
        say "the pipeline broke ($statuses); going on with $suspect alone"
        transcribe "$suspect"
        if [ -z "${state[$suspect]:-}${stopped}" ]; then
            check_transcriber 1600 "${options[@]}" || { stopped=1; break; }
            state[$suspect]=failed reason[$suspect]="broke the pipeline ($statuses)"
        fi
        list_todo
    done
}

write_failures() {
    local path
    for path in "${recordings[@]}"; do
        [ "${state[$path]:-}" != failed ] || printf '%s\t%s\n' "$path" "${reason[$path]}"
    done > "$work/failed.tsv" && mv -fT "$work/failed.tsv" "$output/failed.tsv"
}

report() {
    local path failed=0 there=0
    for path in "${recordings[@]}"; do
        case "${state[$path]:-}" in
            failed) failed=$((failed + 1)) && echo "  failed: $path: ${reason[$path]}" >&2 ;;
            there) there=$((there + 1)) ;;
        esac
    done
    say "$transcribed transcribed, $there already there, $failed failed, ${#todo[@]} left"
    [ "$failed" -eq 0 ] || say "the failed ones are in $output/failed.tsv; --retry tries them again"
    [ "$transcribed" -eq 0 ] || awk -v audio="${hundredths}e-2" -v wall="$1" -v price="${price:-0}" 'BEGIN {
        printf "batch.sh: %.3g hours of audio in %.3g hours: %.3g an hour",
            audio / 3600, wall / 3600, audio / wall
        if (price > 0) printf ", %.3g a dollar", audio / wall / price
        print "" }' >&2
    [ "$failed" -eq 0 ] || [ -n "$stopped" ] || stopped=1
}

parse "$@"
use_tools || exit
began=$EPOCHREALTIME
output="${output%/}"
[[ "$output" != -* ]] || output="./$output"
collect
lock
recall
trap 'stop 143' TERM
trap 'stop 130' INT
trap 'stop 129' HUP
[ ${#todo[@]} -eq 0 ] || transcribe_all
list_todo
write_failures || stopped="${stopped:-1}"
report "$(awk "BEGIN { print $EPOCHREALTIME - $began }")"
exit "${stopped:-0}"
