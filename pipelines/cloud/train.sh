# Sourced by hark lambda: train. The folder of the run is here; an instance gets its newest checkpoint and
# sends back each new one, so that another instance of the same type continues to the same bits.
# shellcheck shell=bash disable=SC2154,SC2034

run_training() {
    use_programs ssh ssh-keygen rsync tar
    use_tools || exit
    [ ${#arguments[@]} -eq 0 ] || wrong "train: expected the options of gpt-train after --, got '${arguments[0]}'"
    [ ${#job_options[@]} -gt 0 ] || wrong "train: expected the options of gpt-train after --"
    least=1 most=1
    check_package
    set_job gpt-train
    use_type_of_before
    say_cost 1
    [ -z "$dry_run" ] || return 0
    lock_output
    mkdir -p "$fleet/claims"
    printf '%s\n' "$package_sum" "${job_options[@]}" | cksum > "$fleet/job.new"
    # A training that ended is not another one's.
    cmp -s "$fleet/job.new" "$fleet/job" || rm -f "$fleet/trained"
    mv -f "$fleet/job.new" "$fleet/job"
    [ ! -e "$fleet/trained" ] || { end_leftovers && say "$output: is trained" && return 0; }
    run_fleet train_there count_training
    say "$output: is trained"
}

# use_type_of_before: other GPUs round differently, so a run stays with the type that began it.
use_type_of_before() {
    local type
    type="$(cat "$output/.hark/lambda/type" 2> /dev/null)" || return 0
    [ "$wanted_types" = any ] || [[ ",$wanted_types," == *",$type,"* ]] ||
        die "$output: was begun on $type, and other GPUs round differently; give --type $type," \
            "or remove $output/.hark/lambda/type"
    wanted_types="$type"
}

count_training() {
    undone=1 unclaimed=1
    [ ! -e "$fleet/trained" ] || undone=0
    [ ${#worker[@]} -eq 0 ] || unclaimed=0
}

# train_there ID: returns 3 if the machine is lost.
train_there() {
    local token
    token="$run-$(cksum < "$fleet/job" | cut -d ' ' -f 1)"
    keep_type "$1"
    clear_job "$token"
    case $? in
        0)
            send_checkpoint || { say "$1: cannot send the checkpoint" && return 3; }
            start_job "gpt-train $(quoted "${job_options[@]}") --output-dir out 2>&1 >> out/run.tsv" || return
            ;;
        3) return 3 ;;
    esac
    follow_job "$1" fetch_checkpoints || return
    [ "$job_status" = 0 ] || { say_log "$1" && die "gpt-train failed there with status $job_status"; }
    : > "$fleet/trained"
}

# keep_type ID: the type of the first instance is that of all.
keep_type() {
    local type
    [ ! -s "$fleet/type" ] || return 0
    must_ask GET "/instances/$1"
    type="$(jq -r '.data.instance_type.name | strings' <<< "$answer")"
    [ -z "$type" ] || echo "$type" > "$fleet/type"
}

# send_checkpoint: the newest one that is here, the table of losses, and no older ones.
send_checkpoint() {
    local newest
    newest="$(cd "$output" && printf '%s\n' step-*/ | grep -E '^step-[0-9]+/$' | sort | tail -n 1)"
    there 'mkdir -p out' < /dev/null || return
    patiently copy_files -l --exclude /.hark --include "/${newest:-none}" --exclude '/step-*/' \
        "$output/" hark:hark/job/out/
}

# fetch_checkpoints: a checkpoint appears here whole, then the links to the newest one and the rest.
fetch_checkpoints() {
    local step steps
    steps="$(patiently there 'cd out && ls -d step-*/ 2> /dev/null | grep -E "^step-[0-9]+/$" || true' \
        < /dev/null)" || return
    mkdir -p "$fleet/incoming" || return
    for step in $steps; do
        [ ! -d "$output/$step" ] || continue
        # One that gpt-train removes meanwhile is not taken.
        patiently copy_files -l "hark:hark/job/out/$step" "$fleet/incoming/$step" 2> /dev/null || return
        mv -T "$fleet/incoming/${step%/}" "$output/${step%/}" || return
    done
    patiently copy_files -l --exclude '/step-*/' --exclude '.*' hark:hark/job/out/ "$output/" 2> /dev/null
}
