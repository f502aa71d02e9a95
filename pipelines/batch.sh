#!/usr/bin/env bash
# Usage: hark batch [OPTION]... --output-dir DIR [FOLDER|FILE]...
# Transcribes many recordings with one pipe, which keeps a GPU busy.
#
# FOLDER/a/b.mp3 becomes DIR/a/b.srt and DIR/a/b.txt, a FILE DIR/NAME.srt and
# DIR/NAME.txt. Recordings that have their files are skipped: after a kill or
# the loss of the machine the same command continues. Those that failed are in
# DIR/failed.tsv, a line each: path, tab, error. They are skipped too until they
# change, unless --retry is given.
#
# Options:
#   -o, --output-dir DIR   where the transcripts are written
#   -m, --model MODEL      Whisper model: a name or a path
#   -f, --format F,...     text, srt, vtt, json, ... [srt,text]
#       --files-from FILE  read folders and files, one per line; - is standard
#                          input
#       --retry            try again what failed before
#       --overwrite        transcribe all again, and replace files that exist.
#                          Without it, a recording fails if a file that hark
#                          batch did not write has the name of its transcript
#       --price DOLLARS    per hour of the machine: prints what a dollar gives
#       --shard N          recordings per audio-decode [200]
#       --jobs N           recordings decoded at a time [audio-decode's]
#       --show-pipe        print the pipe that would run, and run nothing
#       --profile FILE     where the time went, as a trace for Perfetto
#   -h, --help             print a short help and exit
#
# Also all options of: whisper-transcribe, audio-decode.
# On a large GPU --batch-size 128 is 1.6 times as fast with large-v3.
#
# Examples:
#   hark batch -o out ~/lectures --model large-v3
#   hark batch -o out ~/lectures --model large-v3 --price 3.5 --format vtt
#   find /data -name '*.wav' | hark batch -o out --files-from - --model small
set -uo pipefail
export LC_ALL=C.UTF-8
script="hark batch"
here="$(dirname "${BASH_SOURCE[0]}")"
. "$here/recordings.sh"
. "$here/outputs.sh"
. "$here/flags.sh"
. "$here/help.sh"
help_if_asked "$@"

readonly exists="exists; use --overwrite or another --output-dir"
output="" list="" formats=srt,text price="" shard=200 retry="" overwrite="" show_pipe=""
transcribed=0 broken=0    # in this run,
hundredths=0              # of a second of audio
metrics="" watcher=""     # the file of --metrics; the process that watches the GPUs
next_word=60              # at which of its seconds it says how far it is
checked=""                # yes, once the tools have taken their options
pipeline="" stopped=""    # its process group; the exit status of a run that was stopped

parse() {
    learn_flags whisper-transcribe audio-decode
    learn_own_flags --files-from --price --shard
    flag_name[--retry]=--retry flag_name[--show-pipe]=--show-pipe
    while [ $# -gt 0 ]; do
        case "$1" in
            --) shift && add_inputs "$@" && break ;;
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                take_option
                ;;
            *) add_inputs "$1" ;;
        esac
        shift
    done
    [ -n "$output" ] || wrong "--output-dir is required"
    [ ${#inputs[@]} -gt 0 ] || [ -n "$list" ] || wrong "expected a folder, a file or --files-from FILE"
    [[ "$shard" =~ ^[1-9][0-9]{0,5}$ ]] || wrong "--shard: expected 1 or more, got '$shard'"
    check_number "$price" --price "dollars per hour"
    set_endings "$formats"
}

# What take_flag found is this command's own, or goes to its tool.
take_option() {
    case "$flag" in
        --output-dir | --files-from | --price | --shard)
            [ -n "$value" ] || wrong "$flag: expected a value" ;;
        --metrics) want_file && metrics="$(realpath -m -- "$value")" ;;
        --retry | --show-pipe | --overwrite | --no-overwrite)
            [[ "${words[0]}" != *=* ]] || wrong "$flag: expected no value, got '$value'" ;;
    esac
    [ "$flag" = --metrics ] || note_measure transcriber_measures || case "$flag" in
        --output-dir) output="$value" ;;
        --files-from) list="$value" ;;
        --price) price="$value" ;;
        --shard) shard="$value" ;;
        --format) formats="$value" ;;
        --retry) retry=yes ;;
        --show-pipe) show_pipe=yes ;;
        --overwrite) overwrite=yes ;;
        --no-overwrite) overwrite="" ;;
        --split-channels) wrong "$flag: not an option of this command; use hark transcribe $flag" ;;
        --summary | --live | --output-name) wrong "$flag: not an option of this command" ;;
        *) pass_flag ;;
    esac
}

# check_once: the tools take their options and have a model.
check_once() {
    local folder status
    [ -z "$checked" ] || return 0
    folder="$(mktemp -d)"
    check_pipe --format "$formats" --output-dir "$folder"
    status=$?
    rm -rf "$folder"
    [ "$status" -eq 0 ] || exit "$status"
    checked=yes
}

# One run at a time works on an output folder; what a killed one left half-written goes. A new folder
# is not made for options that are wrong.
lock() {
    [ -d "$output" ] || check_once
    make_folder "$output/.hark" || exit 1
    exec {lock}> "$output/.hark/lock" || exit 1
    flock -n "$lock" || die "$output: another hark batch is writing there"
    rm -rf "$output"/.hark/work.*
    # Absolute: awk takes a relative path that has = as an assignment.
    work="$(mktemp -d "$(realpath -- "$output")/.hark/work.XXXXXX")" || exit 1
    trap 'status=$?; end_watch; rm -rf "$work"; end_profile "$status"' EXIT
    if [ -n "$metrics" ]; then
        refuse_other_file "$metrics" "# TYPE hark_"
        [ -w "${metrics%/*}/" ] || die "$metrics: cannot write into this folder"
    fi
    begin_profile
    metrics_dir="$work/metrics"
    mkdir "$metrics_dir" || exit 1
    mkfifo "$work/summary" || exit 1
}

# begin_watch: samples of the GPUs, if there are some, go to `work`/gpus.
begin_watch() {
    hark-trace watch < /dev/null > "$work/gpus" 2> /dev/null {lock}>&- &
    watcher=$!
}

# end_watch: of a run with a profile the samples become a part of it.
end_watch() {
    [ -n "$watcher" ] || return
    kill "$watcher" 2> /dev/null
    wait "$watcher" 2> /dev/null
    watcher=""
    [ -z "$profile" ] || [ ! -s "$work/gpus" ] || cp "$work/gpus" "$profile.gpus"
}

# utilisation: which tool was busy for how long, what the GPUs did, and --metrics.
utilisation() {
    local text gpus="" files=("$metrics_dir"/whisper-transcribe*)
    text="$(busy_tools)"
    [ -z "$text" ] || say "busy: $text"
    end_watch
    [ ! -s "$work/gpus" ] || gpus="$(hark-trace summary "$work/gpus" | grep '^gpu ')"
    while IFS= read -r text; do
        [ -z "$text" ] || say "$text"
    done <<< "$gpus"
    [ -z "$gpus" ] || say "GPUs: $(energy_of "$gpus" "${hundredths}e-2")"
    [ -n "$metrics" ] && [ -e "${files[-1]}" ] || return
    {
        cat "${files[-1]}"
        [ -z "$gpus" ] || printf '# TYPE hark_gpu_energy_joules_total counter\n%s\n' \
            "hark_gpu_energy_joules_total $(energy_of "$gpus" 0 | sed 's/ J//')"
    } > "$metrics.$$" && mv -fT -- "$metrics.$$" "$metrics"
}

# feed PATH...: the audio of all, one shard after the other, so that the transcriber never waits for
# the next one to begin. The stream says which recording is broken.
feed() {
    local at status=0
    for ((at = 1; at <= $#; at += shard)); do
        # A recording has one transcript per format, whatever variables and configurations say.
        HARK_SPLIT_CHANNELS="" measured audio-decode "${decode[@]}" "${@:at:shard}"
        status=$?
        [ "$status" -le 1 ] || return "$status"
    done
}

# publish FILE PATH: the transcripts of a recording get their names.
publish() {
    local stem="${target[$2]}" ending file
    [ -d "${stem%/*}" ] || mkdir -p "${stem%/*}" || return 1
    for ending in "${endings[@]}"; do
        file="${stem#"$output/"}.$ending"
        [ -n "${written[$file]:-}" ] || {
            printf '%s\n' "$file" >> "$output/.hark/written" || return 1
            written[$file]=yes
        }
        mv -fT "$work/$1.$ending" "$stem.$ending" || return 1
    done
}

# Takes whisper-transcribe's summary from stdin, a line as each recording ends.
take_results() {
    local path file length error ending foreign
    while IFS=$'\t' read -r path _ file length error; do
        [ -n "${target[$path]:-}" ] || continue
        [ -n "$error$overwrite" ] || ! find_foreign "$path" || error="$foreign $exists"
        if [ -n "$error" ]; then
            state[$path]=failed reason[$path]="${error#"$path: "}"
            broken=$((broken + 1))
            for ending in "${endings[@]}"; do rm -f "$work/$file.$ending"; done
        elif printf '%s\t%s\n' "$path" "$length" >> "$output/.hark/seconds" && publish "$file" "$path"; then
            state[$path]=transcribed
            transcribed=$((transcribed + 1))
            hundredths=$((hundredths + 10#${length/./}))
        else
            stop 1
        fi
        [ "$SECONDS" -lt "$next_word" ] || {
            say "$((${#recordings[@]} - ${#todo[@]} + transcribed + broken)) of ${#recordings[@]} done"
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
    : > "$work/messages"
    set -m
    {
        feed "$@" | measured mel --mels "$mels" | measured whisper-transcribe \
            --format "$formats" --output-dir "$work" --overwrite --summary /dev/stdout \
            "${transcriber[@]}" "${transcriber_measures[@]}"
        echo "${PIPESTATUS[*]}" > "$work/statuses"
    } < /dev/null >&"$out" 2> "$work/messages" {out}>&- {lines}<&- {lock}>&- &
    pipeline=$!
    set +m
    exec {out}>&-
    [ -z "$stopped" ] || kill -TERM -- "-$pipeline"
    take_results <&"$lines"
    take_results <&"$lines" # what is left if a signal ended the first
    exec {lines}<&-
    wait "$pipeline" 2> /dev/null
    pipeline=""
    show_new_messages
    statuses="exit statuses of audio-decode, mel, whisper-transcribe: $(cat "$work/statuses" \
        2> /dev/null || echo none)"
}

# What the tools have said, without the errors of recordings, which the report has.
show_new_messages() {
    local path
    for path in "${!reason[@]}"; do
        printf '\t\t\t\t%s\n\t\t\t\t%s: %s\n' "${reason[$path]}" "$path" "${reason[$path]}"
    done > "$work/errors"
    show_messages "$work/messages" "$work/errors"
}

# stop STATUS: ends the pipeline, and with it the run.
stop() {
    stopped="$1"
    [ -z "$pipeline" ] || kill -TERM -- "-$pipeline" 2> /dev/null
}

# A pipeline that broke in the middle has finished everything before the break. The next recording
# may be why: it gets a pipeline of its own, and fails if that breaks while a tenth of a second of
# silence passes. So each round finishes one at least.
transcribe_all() {
    local suspect
    check_once
    while [ ${#todo[@]} -gt 0 ] && [ -z "$stopped" ]; do
        transcribe "${todo[@]}"
        list_todo
        [ ${#todo[@]} -gt 0 ] || break
        [ -z "$stopped" ] || break
        suspect="${todo[0]}"
        say "the pipe broke ($statuses); next: $suspect alone"
        transcribe "$suspect"
        if [ -z "${state[$suspect]:-}${stopped}" ]; then
            still_transcribes "${transcriber[@]}" || { stopped=1; break; }
            state[$suspect]=failed reason[$suspect]="broke the pipe ($statuses)"
        fi
        list_todo
    done
}

# report SECONDS: of the whole run.
report() {
    local failed there
    count_outcomes
    say "$transcribed transcribed, $there already there, $failed failed, ${#todo[@]} left"
    advise_on_failed
    [ "$transcribed" -eq 0 ] || say "$(speed "$1")"
    [ -z "$watcher" ] || utilisation
    [ "$failed" -eq 0 ] && [ ${#unreadable[@]} -eq 0 ] || stopped="${stopped:-1}"
}

# speed SECONDS: "5.3 min of audio in 13.5 s: 24 x real time, 6.8 h of audio per dollar"
speed() {
    awk -v audio="${hundredths}e-2" -v wall="$1" -v price="${price:-0}" '
        function time(s) { return s < 120 ? sprintf("%.1f s", s) : s < 7200 ? sprintf("%.1f min", s / 60) : sprintf("%.1f h", s / 3600) }
        BEGIN {
            printf "%s of audio in %s: %.3g x real time", time(audio), time(wall), audio / wall
            if (price > 0) printf ", %.3g h of audio per dollar", audio / wall / price
        }'
}

# The whole pipe, as a shell reads it.
show_batch() {
    local at feeds=""
    check_pipe || exit
    for ((at = 0; at < ${#todo[@]}; at += shard)); do
        feeds+="$(quoted audio-decode "${decode[@]}" "${todo[@]:at:shard}"); "
    done
    [ ${#todo[@]} -le "$shard" ] && feeds="${feeds%; }" || feeds="{ $feeds}"
    show_stages "$feeds" "$(quoted mel --mels "$mels")" \
        "$(quoted whisper-transcribe "${transcriber[@]}" --format "$formats" \
            --output-dir "$output" ${overwrite:+--overwrite})"
}

use_tools || exit
parse "$@"
began=$EPOCHREALTIME
output="${output%/}"
[[ "$output" != -* ]] || output="./$output"
collect
[ -n "$show_pipe" ] || lock
recall
[ -z "$show_pipe" ] || { [ ${#todo[@]} -eq 0 ] || show_batch; exit; }
trap 'stop 143' TERM
trap 'stop 130' INT
trap 'stop 129' HUP
[ ${#todo[@]} -eq 0 ] || { begin_watch && transcribe_all; }
list_todo
write_failures || stopped="${stopped:-1}"
report "$(awk "BEGIN { print $EPOCHREALTIME - $began }")"
exit "${stopped:-0}"
