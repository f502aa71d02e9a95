# Sourced by hark lambda: the instances of a run. A process of its own works with each (a worker); this
# one launches and terminates, keeps to the budget, and replaces what is broken.
# shellcheck shell=bash disable=SC2154,SC2034

readonly most_broken=5            # instances in a row that come up broken, or break before a result
readonly busy_enough=50 too_idle=20 # percent: above, another machine helps; below, one is too many
readonly minutes_busy=3 minutes_idle=10 seconds_apart=300 # that it lasts before a change; between two
high=0 low=0 last_change=0        # of decide_machines
declare -A worker=()              # of an instance: its process
broken=0 next_launch=0 waiting_since=0 next_word=0

# launch_waiting: sets `id`, `name` and `cents` of a new instance, once --wait has one.
launch_waiting() {
    set_now
    waiting_since="$now"
    until launch_round; do
        say_waiting
        pause 30
    done
}

# say_waiting: no region has an instance; the command ends after --wait.
say_waiting() {
    set_now
    [ $((now - waiting_since)) -lt "$wait_seconds" ] ||
        die "no region has had --type $wanted_types free for $wait_for; give more types, or --wait longer"
    [ "$now" -lt "$next_word" ] || say "no region has --type $wanted_types free now; waiting"
    [ "$now" -lt "$next_word" ] || next_word=$((now + 600))
}

# end_instances PREFIX: terminates what runs of this prefix, however the command ends.
end_instances() {
    local ids
    trap '' HUP INT TERM
    if ! set_instances "$1"; then
        mapfile -t ids < <(open_in_ledger "$1")
        [ ${#ids[@]} -eq 0 ] || shout "${ids[@]}"
        return 1
    fi
    mapfile -t ids < <(cut -f 1 <<< "$instances" | grep .)
    if [ ${#ids[@]} -gt 0 ] && [ -n "$keep" ]; then
        say "left running, as --keep says: $(cut -f 2 <<< "$instances" | tr '\n' ' ')"
    elif [ ${#ids[@]} -gt 0 ]; then
        terminate "${ids[@]}"
    fi
    compare_ledger "$1"
}

# start_worker ID WORK: the process that works with an instance. Its exit status is 3 if the instance is
# to be replaced.
start_worker() {
    (
        is_worker=yes fetch=""
        trap 'leave' HUP INT TERM
        make_ready "$1" && send_package "$1" && send_files "$1" && "$2" "$1"
    ) < /dev/null &
    worker[$1]=$!
}

# leave: a worker that is told to end fetches what its job has done until now.
leave() {
    local child
    trap '' HUP INT TERM
    for child in $(jobs -p); do kill "$child" 2> /dev/null; done
    [ -z "$fetch" ] || "$fetch"
    exit 143
}

# end_fleet: the trap of the command's end.
end_fleet() {
    local status=$? id
    trap '' HUP INT TERM EXIT
    for id in "${!worker[@]}"; do kill -TERM "${worker[$id]}" 2> /dev/null; done
    wait
    if end_instances "hark-$run-"; then rm -f "$fleet/open"; else status=1; fi
    set_spent "hark-$run-"
    say "\$$(dollars "$spent") in all for this run"
    rm -rf "$work"
    exit "$status"
}

# end_leftovers: what a killed command has left running ends with this one, which has no work for it.
end_leftovers() { [ ! -e "$fleet/open" ] || trap end_fleet EXIT; }

# adopt: instances of this run that a killed command has left work on; the shards of others are free.
adopt() {
    local id name status ids
    set_instances "hark-$run-" || die_of_problem
    compare_ledger "hark-$run-"
    mapfile -t ids < <(cut -f 1 <<< "$instances")
    release_claims "${ids[@]}"
    while IFS=$'\t' read -r id name status _; do
        [ -n "$id" ] && [ "$status" != terminating ] || continue
        say "$name: is there from before"
        start_worker "$id" "$1"
    done <<< "$instances"
}

# run_fleet WORK COUNT: machines WORK until COUNT says that nothing is left.
run_fleet() {
    local next_minute=0
    rm -f "$fleet"/{busy,retire,log}.*
    use_ssh_key
    : > "$fleet/open"
    trap end_fleet EXIT
    adopt "$1"
    set_now
    waiting_since="$now" desired="$least"
    while :; do
        end_workers
        "$2"
        [ "$undone" -gt 0 ] || return 0
        set_now
        if [ "$now" -ge "$next_minute" ]; then
            next_minute=$((now + 60))
            keep_to_budget
            decide_machines ${#worker[@]} "$unclaimed" "$(mean_busy)"
            say_progress
        fi
        [ ${#worker[@]} -le "$desired" ] || retire_one
        [ "$unclaimed" -eq 0 ] || [ ${#worker[@]} -ge "$desired" ] || [ "$now" -lt "$next_launch" ] || add_machine "$1"
        pause 5
    done
}

# add_machine WORK: one more, if a region has it.
add_machine() {
    if launch_round; then
        start_worker "$id" "$1"
        waiting_since="$now"
    else
        set_now
        next_launch=$((now + 30))
        [ ${#worker[@]} -gt 0 ] || say_waiting
    fi
}

# end_workers: instances whose worker has ended are terminated: nothing is left for them, or they are
# broken.
end_workers() {
    local id status
    for id in "${!worker[@]}"; do
        ! kill -0 "${worker[$id]}" 2> /dev/null || continue
        wait "${worker[$id]}"
        status=$?
        unset "worker[$id]"
        set_now
        waiting_since="$now"
        rm -f "$fleet/busy.$id"
        case "$status" in
            0) broken=0 ;;
            3)
                broken=$((broken + 1))
                say "$id: is replaced"
                ;;
            *) exit "$status" ;; # it has said why
        esac
        [ "$status" -eq 0 ] && [ -n "$keep" ] || terminate "$id" || exit 1
        release_claims "${!worker[@]}"
        [ "$broken" -lt "$most_broken" ] || die "$broken instances in a row were broken; see above"
    done
}

# keep_to_budget: ends the run while the money lasts to fetch and to terminate: three minutes.
keep_to_budget() {
    set_spent "hark-$run-"
    [ -z "$budget_cents" ] || [ $((spent + rate / 20)) -lt "$budget_cents" ] ||
        die "the budget of \$$(dollars "$budget_cents") is used up: \$$(dollars "$spent") so far;" \
            "the same command with a larger --budget continues"
}

say_progress() {
    [ "$now" -ge "$next_word" ] || return 0
    next_word=$((now + 60))
    say "$undone shard(s) left, ${#worker[@]} instance(s), \$$(dollars "$spent") so far"
}

# mean_busy: of all machines, in percent; nothing while one of them has not said its share yet.
mean_busy() {
    local files=("$fleet"/busy.*)
    [ -e "${files[0]}" ] && [ ${#files[@]} -eq ${#worker[@]} ] || return 0
    awk '{ sum += $1 } END { print int(sum / NR) }' "${files[@]}"
}

# decide_machines RUNNING UNCLAIMED BUSY: once a minute; sets `desired`. One more after three minutes in
# which shards wait and the GPUs are busy (if they are not, the way to them is what limits), one less
# after ten in which they are idle; five minutes between two changes.
decide_machines() {
    local floor=$(($2 < least - $1 ? $1 + $2 : least))
    [ "$desired" -ge "$floor" ] || desired="$floor"
    [ -n "$3" ] || { high=0 low=0 && return; }
    if [ "$2" -gt 0 ] && [ "$3" -ge "$busy_enough" ]; then high=$((high + 1)); else high=0; fi
    if [ "$3" -lt "$too_idle" ]; then low=$((low + 1)); else low=0; fi
    [ $((now - last_change)) -ge "$seconds_apart" ] || return 0
    if [ "$high" -ge "$minutes_busy" ] && [ "$1" -lt "$most" ] && can_afford_more; then
        desired=$(($1 + 1)) high=0 last_change="$now"
    elif [ "$low" -ge "$minutes_idle" ] && [ "$1" -gt "$least" ]; then
        desired=$(($1 - 1)) low=0 last_change="$now"
    fi
}

# can_afford_more: a quarter of an hour of one machine more is within the budget; less is its boot alone.
can_afford_more() {
    [ -z "$budget_cents" ] || [ $((spent + (rate + dearest) / 4)) -lt "$budget_cents" ]
}

# retire_one: the instance with the last id takes no more shards.
retire_one() {
    : > "$fleet/retire.$(printf '%s\n' "${!worker[@]}" | sort | tail -n 1)"
}
