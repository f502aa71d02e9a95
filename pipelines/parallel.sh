#!/usr/bin/env bash
# Usage: hark parallel [OPTION]... [-- BATCH_OPTION...]
# Transcribes the shards of a plan on several machines, by GNU parallel over ssh.
#
# Each machine runs hark worker, which does a shard. hark and both folders are at
# the same paths on all machines. A shard that fails is tried on another machine.
# The same command continues after any end. What follows -- are options of hark
# batch. stdout has the table of hark-shard check. The exit status is 1 if a
# shard is missing or wrong, or if a recording failed.
#
# Options:
#       --shards DIR         the folder that hark-shard plan has written
#   -o, --output-dir DIR     where results are published
#       --sshlogin LIST      machines: [USER@]HOST,...; : is this one [:]
#       --sshloginfile FILE  a line per machine; lines may be added meanwhile
#       --slots N            workers per machine, such as one per GPU [1]
#       --retries N          how often a shard is tried [3]
#       --only NAME,...      work on these shards alone
#       --stale SECONDS      of silence after which another worker is lost [600]
#       --scratch DIR        where recordings are fetched to [in --output-dir]
#       --price DOLLARS      per hour of a machine: prints what the work costs
#       --speed X            times real time of a machine [that of shards done]
#       --dry-run            print what is to do and its cost; run nothing
#   -h, --help               print a short help and exit
#
# Examples:
#   hark shard plan lectures -o shards
#   hark parallel --shards shards -o results --sshlogin a,b -- --model small
set -uo pipefail
export LC_ALL=C.UTF-8
script="hark parallel"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
. "$here/shards.sh"
help_if_asked "$@"

logins=() slots=1 retries=3 running=""

take_own_option() {
    case "$flag" in
        --sshlogin) logins+=(--sshlogin "$value") ;;
        --sshloginfile) logins+=(--sshloginfile "$value") ;;
        --slots) slots="$value" ;;
        --retries) retries="$value" ;;
    esac
}

check_options() {
    [[ "$slots" =~ ^[1-9][0-9]{0,2}$ ]] || wrong "--slots: expected 1 or more, got '$slots'"
    [[ "$retries" =~ ^[1-9][0-9]?$ ]] || wrong "--retries: expected 1 to 99, got '$retries'"
    [ ${#logins[@]} -gt 0 ] || logins=(--sshlogin :)
    check_shard_options
    command -v parallel > /dev/null || die "parallel is not installed; it is GNU parallel, of the package parallel"
}

# count_machines: sets `machines` to the number of workers, as far as it is known.
count_machines() {
    local i list
    machines=0
    for ((i = 1; i < ${#logins[@]}; i += 2)); do
        list="${logins[i]}"
        [ "${logins[i - 1]}" = --sshlogin ] || list="$(grep -v '^ *\(#\|$\)' "$list" | tr '\n' ',')"
        list="${list%,}" list="${list//[^,]/}"
        machines=$((machines + (${#list} + 1) * slots))
    done
}

# keep_log: the log's lines of shards whose result is there; GNU parallel passes over those that say 0.
keep_log() {
    local line
    [ -f "$log" ] || return 0
    {
        head -n 1 "$log"
        tail -n +2 "$log" | while IFS= read -r line; do
            [ ! -e "$output/${names[${line%%$'\t'*} - 1]}.done" ] || printf '%s\n' "$line"
        done
    } > "$log.part" && mv -f "$log.part" "$log"
}

# stop STATUS: GNU parallel waits for its jobs after one signal, and ends them after two.
stop() {
    trap '' HUP INT TERM
    [ -z "$running" ] || {
        kill -TERM "$running" 2> /dev/null && sleep 1 && kill -TERM "$running" 2> /dev/null
        wait "$running"
    }
    exit "$1"
}

run_workers() {
    local worker
    worker="$(worker_command --until-done)"
    make_folder "$output" || exit 1
    mapfile -t names < <(tail -n +2 "$shards/shards.tsv" | cut -f 1)
    [ -z "$only" ] || mapfile -t names < <(tr ',' '\n' <<< "$only")
    log="$output/.parallel.$({ sha256sum < "$shards/shards.tsv"; echo "$only"; } | sha256sum | cut -c 1-12).tsv"
    keep_log
    trap 'stop 129' HUP
    trap 'stop 130' INT
    trap 'stop 143' TERM
    # A shard with a result is done, also if some of its recordings failed, which is a worker's status 1.
    # Without SHELL, GNU parallel guesses a shell from the processes that started it.
    PARALLEL_SHELL="$BASH" parallel --will-cite --joblog "$log" --resume-failed --retries "$retries" \
        --jobs "$slots" --line-buffer \
        "${logins[@]}" "$worker --only {} -- $(quoted "${job_options[@]}") || [ -e $(quoted "$output")/{}.done ]" \
        :::: <(printf '%s\n' "${names[@]}") < /dev/null &
    running=$!
    wait "$running" || say "some shards failed; $log has their exit statuses"
    running=""
}

learn_shard_flags --sshlogin --sshloginfile --slots --retries
parse_shard_options "$@"
use_tools || exit
check_options
list_shards
count_machines
say_cost "$machines"
[ -z "$dry_run" ] || exit 0
[ ${#todo[@]} -eq 0 ] || run_workers
hark-shard check "$shards" "$output" | awk -F '\t' '
    { print }
    $1 == "failed" { failed = $3 }
    END { exit failed > 0 }'
