#!/usr/bin/env bash
# Usage: hark worker [OPTION]... [-- BATCH_OPTION...]
# Transcribes the shards of a plan, next to other workers on any machines.
#
# A worker claims a shard, fetches its recordings (paths, URLs by curl,
# REMOTE:PATH by rclone), runs hark batch, and publishes NAME.jsonl and last
# NAME.done in --output-dir, until no shard is left. Workers share both folders.
# After a kill the same command continues. What follows -- are options of hark
# batch. The exit status is 1 if a recording of its shards failed, 75 if some
# cannot be fetched now.
#
# Options:
#       --shards DIR       the folder that hark-shard plan has written
#   -o, --output-dir DIR   where results are published
#       --only NAME,...    work on these shards alone
#       --until-done       wait for other workers' shards; take those of lost
#       --stale SECONDS    of silence after which another worker is lost [600]
#       --scratch DIR      where recordings are fetched to [in --output-dir]
#       --price DOLLARS    per hour of a machine: prints what the work costs
#       --speed X          times real time of a machine [that of shards done]
#       --dry-run          print what is to do and its cost; run nothing
#   -h, --help             print a short help and exit
#
# Examples:
#   hark shard plan lectures -o shards
#   hark worker --shards shards -o results --dry-run --speed 500 --price 2
#   hark worker --shards shards -o results -- --model small
set -uo pipefail
export LC_ALL=C.UTF-8
script="hark worker"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
. "$here/shards.sh"
. "$here/fetch.sh"
help_if_asked "$@"

readonly most_tries=3 # of a shard whose recordings cannot be fetched
until_done="" claim="" child="" beating="" mine=0 failed=0
declare -A tries=()

take_own_option() { until_done=yes; }

# begin_work: `own` is this worker's file, which is renewed while it lives. A claim is a hard link to it.
begin_work() {
    local program
    for program in jq flock setpriv curl; do
        command -v "$program" > /dev/null || die "$program is not installed"
    done
    make_folder "$output/.claims" && make_folder "$output/.work" || exit 1
    own="$output/.claims/.worker.$(uname -n).$$"
    started "$$"
    # Of the machine, its container and the process, so that no other has the same.
    echo "$(< /proc/sys/kernel/random/boot_id) $(readlink /proc/self/ns/pid) $$ $start" > "$own" || exit 1
    trap 'end_work $?' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    # Its own copy of every file descriptor would keep pipes of the caller open.
    (while [ -d "/proc/$$" ] && touch -c "$own"; do sleep $((stale > 60 ? 20 : (stale + 2) / 3)); done) \
        < /dev/null > /dev/null 2>&1 &
    beating=$!
}

# end_work STATUS: of the script. What it runs ends first.
end_work() {
    trap '' HUP INT TERM
    local job
    for job in $(jobs -p); do
        kill -TERM -- "-$job" 2> /dev/null || kill -TERM "$job" 2> /dev/null
    done
    [ -z "$child" ] || wait "$child" 2> /dev/null
    release
    rm -f "$own"
    exit "$1"
}

# started PID: sets `start` to when the process began, in the kernel's ticks; nothing if it has ended.
started() {
    local stat
    start=""
    stat="$(cat "/proc/$1/stat" 2> /dev/null)" || return 0
    stat="${stat##*) }"
    [[ "$stat" == [ZX]* ]] || start="$(cut -d ' ' -f 20 <<< "$stat")"
}

# describe_job: all workers of a folder have the same plan, model and options.
describe_job() {
    local new="$output/.claims/.job.$(uname -n).$$"
    rm -f "$new"
    hark-shard job ${job_model:+--model "$job_model"} -- "$shards" "${key_options[@]}" > "$new" || exit
    ln -T "$new" "$output/job.json" 2> /dev/null || cmp -s "$new" "$output/job.json" || {
        rm -f "$new"
        [ -e "$output/job.json" ] || die "$output: cannot make hard links there; use another file system"
        die "$output: has results of another plan, model or version, or of other options (job.json there);" \
            "use another --output-dir"
    }
    rm -f "$new"
}

# claim_shard NAME: returns 1 if it is done, or another worker has it.
claim_shard() {
    claim="$output/.claims/$1"
    if [ ! -e "$output/$1.done" ]; then
        [ ! -e "$claim" ] || take_stale "$1"
        ln -T "$own" "$claim" 2> /dev/null
        # The answer of a file server may have been lost.
        if [ "$claim" -ef "$own" ]; then
            [ -e "$output/$1.done" ] || return 0
            rm -f "$claim"
        fi
    fi
    claim=""
    return 1
}

release() {
    [ -z "$claim" ] || [ ! "$claim" -ef "$own" ] || rm -f "$claim"
    claim=""
}

# take_stale NAME: removes the claim of a worker that is lost: its process has ended, if that was on
# this machine, or its file was not renewed. Times are the file system's own: clocks differ.
take_stale() {
    local file="$output/.claims/$1" away="$output/.claims/.lost.$1.$$" seen boot space pid began start age
    seen="$(cat "$file" 2> /dev/null)" || return 0
    read -r boot space pid began <<< "$seen"
    if [ "$boot $space" = "$(< /proc/sys/kernel/random/boot_id) $(readlink /proc/self/ns/pid)" ]; then
        started "$pid"
        [ "$start" != "$began" ] || return 0
    else
        touch -c "$own"
        age=$(($(stat -c %Y "$own") - $(stat -c %Y "$file" 2> /dev/null || echo 9999999999)))
        [ "$age" -gt "$stale" ] || return 0
    fi
    mv -T "$file" "$away" 2> /dev/null || return 0
    # Another worker may have been faster, and this is its new claim.
    [ "$(cat "$away")" = "$seen" ] && say "shard $1: its worker is lost" || ln -T "$away" "$file" 2> /dev/null
    rm -f "$away"
}

# set_folders NAME: of a shard: `work`, and `fetched` for its recordings.
set_folders() {
    work="$output/.work/$1"
    fetched="${scratch:+$scratch/hark-$(cksum <<< "$output" | cut -d ' ' -f 1)-$1}"
    fetched="${fetched:-$work/fetched}"
}

# remove_leftovers: folders of shards that are done, whose workers were killed before they removed them;
# in --scratch those of this machine.
# A shard may be done while a worker that has begun it again lives: that one holds the lock.
remove_leftovers() {
    local work fetched folder name
    set_folders ""
    for folder in "$output/.work"/* ${scratch:+"$fetched"*}; do
        name="${folder##*/}"
        name="${name#hark-*-}"
        [ -n "$name" ] && [ -e "$output/$name.done" ] || continue
        set_folders "$name"
        mkdir -p "$work"
        flock -n "$work/busy" rm -rf "$fetched" "$work" 2> /dev/null
    done
}

# do_shard NAME: returns 75 if its recordings cannot be fetched now.
do_shard() {
    local work fetched busy status=0
    set_folders "$1"
    # What a killed worker runs holds this lock until it ends, in a moment; it may publish the shard, and
    # then others remove the folder.
    mkdir -p "$work/out" && exec {busy}> "$work/busy" || { [ -e "$output/$1.done" ] && return 0 || exit 1; }
    flock -w 120 "$busy"
    if [ ! -e "$output/$1.done" ]; then
        finish_shard "$1"
        status=$?
    fi
    exec {busy}>&-
    [ ! -e "$output/$1.done" ] || rm -rf "$fetched" "$work"
    return "$status"
}

# finish_shard NAME: whose lock this worker holds. Returns 75 if its recordings cannot be fetched now.
finish_shard() {
    local began=$EPOCHREALTIME status
    mkdir -p "$fetched" && cp "$output/job.json" "$work/job.json" || exit 1
    fetch_shard "$shards/$1.jsonl" "$fetched/in"
    status=$?
    [ "$status" -eq 0 ] || { [ "$status" -eq 75 ] && return 75 || exit 1; }
    cp "$fetched/in.tsv" "$work/unfetched.tsv" || exit 1
    transcribe_shard "$1"
    [ "$claim" -ef "$own" ] || { say "shard $1: another worker has taken it" && return 0; }
    hark-shard collect "$shards" "$1" "$work" "$output" \
        --seconds "$(awk "BEGIN { print $EPOCHREALTIME - $began }")" || exit 1
    name_failed "$1"
    mine=$((mine + 1))
}

# transcribe_shard NAME: what has been fetched, by hark batch.
transcribe_shard() {
    local batch="$here/batch" status list=()
    mapfile -d '' -t list < <(find "$fetched/in" -mindepth 1 -name '??????*' -print0 | sort -z)
    [ -x "$batch" ] || batch="$here/batch.sh"
    if [ ${#list[@]} -gt 0 ]; then
        printf '%s\n' "${list[@]}" > "$work/list"
        setpriv --pdeathsig TERM "$batch" --output-dir "$work/out" --format jsonl --files-from "$work/list" \
            "${job_options[@]}" < /dev/null &
        child=$!
        wait "$child"
        status=$?
        child=""
        [ "$status" -le 1 ] || exit "$status"
    fi
}

# name_failed NAME: says which recordings of the shard failed; hark batch has other names for them.
name_failed() {
    local error
    while IFS= read -r error; do
        failed=$((failed + 1))
        say "shard $1: $error"
    done < <(jq -r 'select(has("error")) | "\(.id): \(.error)"' "$output/$1.jsonl")
}

# work_on_shards: until none is left for this worker. Returns 75 if some cannot be fetched now.
work_on_shards() {
    local name claimed left
    while :; do
        claimed="" left=""
        list_shards
        for name in "${todo[@]}"; do
            [ "${tries[$name]:-0}" -lt "$most_tries" ] || { left=75 && continue; }
            claim_shard "$name" || continue
            say "shard $name"
            if do_shard "$name"; then
                claimed=yes
            else
                left=75 tries[$name]=$((${tries[$name]:-0} + 1))
                say "shard $name: cannot be fetched now"
            fi
            release
        done
        [ ${#todo[@]} -gt 0 ] || return 0
        [ -z "$claimed" ] || continue
        [ -n "$until_done" ] || return "${left:-0}"
        still_possible || return 75
        sleep 5
    done
}

# still_possible: there is a shard that was not tried without success.
still_possible() {
    local name
    for name in "${todo[@]}"; do [ "${tries[$name]:-0}" -ge "$most_tries" ] || return 0; done
    return 1
}

use_tools || exit
learn_shard_flags
flag_name[--until-done]=--until-done
parse_shard_options "$@"
check_shard_options
list_shards
say_cost 1
[ -z "$dry_run" ] || exit 0
remove_leftovers
[ ${#todo[@]} -gt 0 ] || exit 0
begin_work
describe_job
work_on_shards
status=$?
remove_leftovers
list_shards
say "$(counted "$mine" shard) done by this worker, ${#todo[@]} of $planned left"
[ "$failed" -eq 0 ] || say "$(counted "$failed" recording) failed"
[ "$status" -ne 0 ] || [ "$failed" -eq 0 ] || status=1
exit "$status"
