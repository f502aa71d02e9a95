#!/usr/bin/env bash
# Usage: hark lambda [OPTION]... COMMAND [ARGUMENT]... [-- OPTION_OF_THE_JOB...]
# Rents GPUs from Lambda by the hour, works there and terminates them.
#
# run and train print what they cost before they rent, fetch the outputs every
# minute and terminate what they rented, however they end. The same command
# continues a stopped one. What follows -- is for hark batch or gpt-train there;
# files that it names are sent. The key is LAMBDA_API_KEY or --api-key-file's.
#
# COMMAND is one of
#   types   instance types: price per hour, and the regions that have one now
#   up      rents one instance that runs kernels, and leaves it running
#   run     transcribes folders and recordings into --output-dir
#   train   trains with gpt-train into --output-dir; checkpoints come down
#   status  what runs, and what it has cost so far
#   ssh     a shell on an instance: its name or id, then a command or nothing
#   down    terminates instances by name or id, or all of hark's: --all
#   reap    terminates hark's instances that are older than --older
#
# Options:
#   -o, --output-dir DIR   where the outputs of run and train come down
#       --type TYPE,...    instance types, the preferred first, or any [any]
#       --region REGION    region, or any [any]
#       --wait TIME        how long to wait for an instance to be free [1h]
#       --max-price D      dollars per hour that one instance may cost
#       --budget D         dollars that this run may cost; it stops before
#       --machines A..B    instances of run, as many as its work needs [1]
#       --shard N          recordings that an instance takes at a time [50]
#       --files-from FILE  reads folders and recordings of run, one per line
#       --retry            run: try again what failed before
#       --deadline TIME    when instances end themselves, or never [12h]
#       --keep             leave the instances running at the end
#       --package FILE     tar file or folder of hark [this installation]
#       --filesystem NAME  Lambda's file system to attach; models are kept there
#       --allow CIDR       addresses that may reach port 22 [0.0.0.0/0]
#       --api-key-file F   has the API's key [~/.lambda_cloud/lambda_keys]
#       --older TIME       of reap: the age [12h]
#       --all              of down: all of hark's instances
#       --dry-run          of up, run and train: print the cost, and rent nothing
#   -h, --help             print a short help and exit
#
# Examples:
#   hark lambda types
#   hark lambda run -o out lectures --budget 20 -- --model large-v3
#   hark lambda train -o run --type gpu_1x_a10 -- --train train.bin
#   hark lambda reap --older 2h
set -uo pipefail
export LC_ALL=C.UTF-8
script="hark lambda"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
. "$here/recordings.sh"
. "$here/outputs.sh"
. "$here/flags.sh"
. "$here/help.sh"
for part in api instances machine job run train fleet; do . "$here/cloud/$part.sh"; done
help_if_asked "$@"

command="" arguments=() job_options=()
output="" list="" retry="" overwrite=""
wanted_types=any region=any wait_for=1h machines=1 shard=50 deadline=12h
keep="" package="" filesystem="" allow=0.0.0.0/0 key_file="${HOME:-}/.lambda_cloud/lambda_keys"
older=12h all="" dry_run=""
max_cents="" budget_cents="" built="" needs_cuda="" needs_driver="" run=""

parse() {
    learn_own_flags --output-dir -o --type --region --wait --max-price --budget --machines --shard \
        --files-from --deadline --package --filesystem --allow --api-key-file --older
    flag_name[-o]=--output-dir flag_name[--retry]=--retry flag_name[--keep]=--keep
    flag_name[--all]=--all flag_name[--dry-run]=--dry-run
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            --) shift && job_options=("$@") && break ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                take_option
                ;;
            *)
                [ "$command" != ssh ] || { arguments=("$@") && break; } # not hark's options
                [ -n "$command" ] && arguments+=("$1") || command="$1"
                ;;
        esac
        shift
    done
}

take_option() {
    [ -z "${flag_value[$flag]:-}" ] || [ -n "$value" ] || wrong "$flag: expected a value"
    [ -n "${flag_value[$flag]:-}" ] || [[ "${words[0]}" != *=* ]] ||
        wrong "$flag: expected no value, got '$value'"
    case "$flag" in
        --output-dir) output="${value%/}" ;;
        --type) wanted_types="$value" ;;
        --region) region="$value" ;;
        --wait) wait_for="$value" ;;
        --max-price) set_cents "$value" "$flag" && max_cents="$cents" ;;
        --budget) set_cents "$value" "$flag" && budget_cents="$cents" ;;
        --machines) machines="$value" ;;
        --shard) shard="$value" ;;
        --files-from) list="$value" ;;
        --retry) retry=yes ;;
        --deadline) deadline="$value" ;;
        --keep) keep=yes ;;
        --package) package="$value" ;;
        --filesystem) filesystem="$value" ;;
        --allow) allow="$value" ;;
        --api-key-file) key_file="$value" ;;
        --older) older="$value" ;;
        --all) all=yes ;;
        --dry-run) dry_run=yes ;;
    esac
}

check_options() {
    [[ "$wanted_types" =~ ^[a-z0-9_,]+$ ]] || wrong "--type: expected names such as gpu_1x_a10, got '$wanted_types'"
    [[ "$region" =~ ^[a-z0-9-]+$ ]] || wrong "--region: expected a name such as us-east-1, got '$region'"
    [[ "$shard" =~ ^[1-9][0-9]{0,5}$ ]] || wrong "--shard: expected 1 or more, got '$shard'"
    [[ "$machines" =~ ^([1-9][0-9]{0,2})(\.\.([1-9][0-9]{0,2}))?$ ]] ||
        wrong "--machines: expected a number or 1..8, got '$machines'"
    least="${BASH_REMATCH[1]}" most="${BASH_REMATCH[3]:-$machines}"
    [ "$least" -le "$most" ] || wrong "--machines: expected the smaller number first, got '$machines'"
    [[ "$allow" =~ ^[0-9.]+/[0-9]{1,2}$ ]] || wrong "--allow: expected addresses such as 203.0.113.7/32, got '$allow'"
    [ -z "$filesystem" ] || [[ "$filesystem" =~ ^[a-zA-Z][0-9a-zA-Z-]{0,59}$ ]] ||
        wrong "--filesystem: expected letters, digits and -, got '$filesystem'"
    [ -z "$filesystem" ] || [ "$region" != any ] || wrong "--filesystem: needs --region, that of the file system"
    set_seconds "$older" --older && older_seconds="$seconds"
    set_seconds "$wait_for" --wait && wait_seconds="$seconds"
    deadline_seconds=0
    [ "$deadline" = never ] || { set_seconds "$deadline" --deadline && deadline_seconds="$seconds"; }
    [ "$deadline" = never ] || [ "$deadline_seconds" -gt 0 ] || wrong "--deadline: expected more than 0"
    case "$command" in
        run | train) [ -n "$output" ] || wrong "--output-dir is required" ;;
        *) [ ${#job_options[@]} -eq 0 ] || wrong "--: $command has no job" ;;
    esac
    [[ "$output" != -* ]] || output="./$output"
}

# use_programs PROGRAM...: they are installed.
use_programs() {
    local program
    for program in "$@"; do
        command -v "$program" > /dev/null || die "$program is not installed"
    done
}

# begin_work: programs, the key, and the folders for what is kept (`store`) and what is not (`work`).
begin_work() {
    use_programs curl jq flock column
    refuse_offline "$url"
    read_lambda_key "$key_file"
    [ -n "${XDG_STATE_HOME:-}${HOME:-}" ] || die "HOME is not set: it has no place to note its instances"
    store="${XDG_STATE_HOME:-$HOME/.local/state}/hark/lambda"
    (umask 077 && make_folder "$store") || exit 1
    work="$(mktemp -d)" || exit 1
    trap 'rm -rf "$work"' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# show_status: all of hark's instances with their costs, and those of others.
show_status() {
    local id name status ip place type cents start so_far total=0 rate=0
    set_instances "" || die_of_problem
    set_now
    echo $'NAME\tID\tTYPE\tREGION\tSTATUS\tADDRESS\tHOURS\t$/HOUR\t$ SO FAR' > "$work/table"
    while IFS=$'\t' read -r id name status ip place type cents start; do
        [ -n "$id" ] || continue
        rate=$((rate + cents))
        so_far=- hours=-
        [[ "$name" != hark-* ]] || [ "$start" = - ] || {
            so_far="$(((now - start) * cents / 3600))"
            total=$((total + so_far)) so_far="$(dollars "$so_far")"
            hours="$(dollars $(((now - start) / 36)))"
        }
        (IFS=$'\t' && row=("$name" "$id" "$type" "$place" "$status" "$ip" "$hours" "$(dollars "$cents")" "$so_far") &&
            echo "${row[*]}")
    done <<< "$instances" >> "$work/table"
    column -t -s $'\t' < "$work/table"
    echo "\$$(dollars "$rate") per hour now; \$$(dollars "$total") so far of hark's instances that run"
}

# pick WORD...: sets `picked`, the ids of hark's instances of these names or ids.
pick() {
    local word id
    picked=()
    set_instances hark- || die_of_problem
    for word in "$@"; do
        id="$(awk -F '\t' -v word="$word" '$1 == word || $2 == word { print $1 }' <<< "$instances")"
        [ -n "$id" ] || die "$word: no instance of hark has this name or id; see $script status"
        picked+=("$id")
    done
}

take_down() {
    if [ -n "$all" ]; then
        set_instances hark- || die_of_problem
        mapfile -t picked < <(cut -f 1 <<< "$instances" | grep .)
    else
        [ ${#arguments[@]} -gt 0 ] || wrong "down: expected names or ids of instances, or --all"
        pick "${arguments[@]}"
    fi
    [ ${#picked[@]} -gt 0 ] || { say "no instance of hark runs" && return; }
    terminate "${picked[@]}" && say "terminated: ${picked[*]}"
}

reap() {
    set_instances hark- || die_of_problem
    set_now
    mapfile -t picked < <(awk -F '\t' -v before=$((now - older_seconds)) '
        $8 != "-" && $8 != "" && $8 <= before { print $1 }' <<< "$instances")
    [ ${#picked[@]} -gt 0 ] || { say "no instance of hark is older than $older" && return; }
    terminate "${picked[@]}" && say "terminated: ${picked[*]}"
}

# enter: a shell there, or a command.
enter() {
    [ ${#arguments[@]} -gt 0 ] || wrong "ssh: expected a name or an id of an instance; see $script status"
    use_programs ssh
    pick "${arguments[0]}"
    ip="$(awk -F '\t' -v id="${picked[0]}" '$1 == id { print $4 }' <<< "$instances")"
    [ "$ip" != - ] || die "${arguments[0]}: has no address yet"
    write_ssh_config "${picked[0]}" "$ip"
    rm -rf "$work"
    exec ssh -F "$ssh_config" hark "${arguments[@]:1}"
}

# say_cost HOW_MANY: what is going to be rented, before it is.
say_cost() {
    local limit="there is no limit: give --budget"
    set_types
    check_types
    check_filesystem
    [ "$deadline" = never ] ||
        limit="at most \$$(dollars $((dearest * $1 * deadline_seconds / 3600))) by the deadline of $deadline"
    [ -z "$budget_cents" ] || limit="never more than the budget of \$$(dollars "$budget_cents")"
    say "up to $1 instance(s) of at most \$$(dollars "$dearest") per hour each, billed per minute; $limit"
}

bring_up() {
    use_programs ssh ssh-keygen
    run="up$(od -An -N3 -tx1 /dev/urandom | tr -d ' ')"
    [ -z "$package" ] || check_package
    say_cost 1
    [ -z "$dry_run" ] || return 0
    use_ssh_key
    trap 'status=$?; end_instances "hark-$run-"; rm -rf "$work"; exit $status' EXIT
    for ((attempts = 1; attempts <= 5; attempts++)); do
        launch_waiting
        make_ready "$id" && break
        terminate "$id" || true
        id=""
    done
    [ -n "$id" ] || die "five instances came up broken; try another --type or --region"
    [ -z "$package" ] || send_package "$id" || die "$id: cannot send the package"
    trap 'rm -rf "$work"' EXIT
    [ "$deadline" = never ] || say "$name: ends itself in $deadline"
    say "$name: $script ssh $name; $script down $name"
    echo "$name"
}

find_tools
parse "$@"
[ -n "$command" ] || wrong "expected a command first"
case "$command" in
    types | up | run | train | status | ssh | down | reap) ;;
    *) wrong "unknown command '$command'" ;;
esac
check_options
begin_work
case "$command" in
    types) show_types ;;
    up) bring_up ;;
    run) run_recordings ;;
    train) run_training ;;
    status) show_status ;;
    ssh) enter ;;
    down) take_down ;;
    reap) reap ;;
esac
