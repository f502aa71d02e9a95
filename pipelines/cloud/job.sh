# Sourced by hark lambda: the job on a machine. ~/hark/job there has in/, out/, log, and status once it
# has ended; its name is `token`, so that a job whose start was not answered is not started twice.
# shellcheck shell=bash disable=SC2154,SC2034

readonly poll_seconds=60 most_misses=10 # minutes without an answer, after which a machine is lost
job_files=()  # a path here and its name in ~/hark/files, and so on
job_models=() # names of models that the machine gets by itself
is_worker=""  # yes in the processes that work with a machine

# set_job OPTION_TOOL...: checks `job_options`, which are those of the tools, before anything is rented.
# Paths that are here become paths there.
set_job() {
    local kind given=("${job_options[@]}") place
    learn_flags "$@"
    set -- "${given[@]}"
    job_options=()
    while [ $# -gt 0 ]; do
        [[ "$1" == -?* ]] || wrong "after --: expected an option of the job, got '$1'"
        take_flag "$@" || wrong "after --: the job has no option '$1'"
        shift ${#words[@]}
        refuse_own "$flag"
        kind="${flag_completes[$flag]:-}"
        if [[ "$kind" == *model && "$value" != */* && ! -e "$value" ]]; then
            job_models+=("$value")
        elif [[ "$kind" =~ (file|directory|model)$ && -e "$value" ]]; then
            place="$((${#job_files[@]} / 2))-$(basename -- "$value" | tr -c 'A-Za-z0-9._\n-' _)"
            [ -d "$value" ] && job_files+=("${value%/}/" "$place/") || job_files+=("$value" "$place")
            value="../files/$place"
        fi
        [ -z "${flag_value[$flag]:-}" ] && job_options+=("${words[@]}") || job_options+=("$flag" "$value")
    done
}

# refuse_own FLAG: what hark lambda chooses itself.
refuse_own() {
    case "$1" in
        --output-dir | --output-name | --summary | --live | --overwrite | --tensorboard | --dry-run)
            wrong "after --: $1 is not an option of a job in the cloud" ;;
    esac
}

# start_job COMMAND: unless it has been started. Its output goes to the file log, if the command does not
# send it elsewhere. Returns 3 if the machine does not answer.
start_job() {
    local tries
    for tries in 1 2 3; do
        # shellcheck disable=SC2016
        ! there "mkdir started 2> /dev/null || exit 0
            setsid -f bash -c $(quoted "echo \$\$ > pid; { $1
                } >> log 2>&1; echo \$? > status.part; mv status.part status") < /dev/null > /dev/null 2>&1
            until [ -s pid ]; do sleep 0.05; done" < /dev/null || return 0
        pause 10
    done
    say "cannot start the job"
    return 3
}

# clear_job TOKEN: makes room for a job, unless the machine has this one. Returns 1 if it has been
# started, 3 if the machine does not answer.
clear_job() {
    local said
    # shellcheck disable=SC2016
    said="$(there "[ \"\$(cat token 2> /dev/null)\" = $1 ] || {
            old=\$(cat pid 2> /dev/null) && kill -KILL -- -\$old 2> /dev/null
            cd .. && rm -rf job && mkdir job && cd job && echo $1 > token; }
        [ ! -e started ] || echo started")" || return 3
    [ "$said" != started ]
}

# follow_job ID FETCH: until the job has ended; its outputs come down every minute, by the function
# FETCH. Sets `job_status`. Returns 3 if the machine is lost.
follow_job() {
    local misses=0 said ended
    fetch="$2"
    while :; do
        # shellcheck disable=SC2016
        if said="$(patiently there 'echo "status=$(cat status 2> /dev/null)"
                [ -e status ] || kill -0 -- "-$(cat pid)" 2> /dev/null || [ -e status ] || echo vanished
                echo "busy=$(nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits \
                    2> /dev/null | awk "{ sum += \$1 } END { if (NR) print int(sum / NR) }")"' \
                < /dev/null 2> /dev/null)"; then
            note_busy "$1" "${said##*busy=}"
            ended="${said%%$'\n'*}" ended="${ended#status=}"
            if "$2"; then
                misses=0
                [ -z "$ended" ] || { job_status="$ended" fetch="" && return 0; }
            else
                misses=$((misses + 1))
            fi
            [[ "$said" != *vanished* ]] || { say "$1: its job was killed" && return 3; }
        else
            misses=$((misses + 1))
            still_active "$1" || return 3
        fi
        [ "$misses" -lt "$most_misses" ] || { say "$1: no answer for $misses minutes" && return 3; }
        pause "$poll_seconds"
    done
}

# still_active ID: Lambda says so, or does not answer.
still_active() {
    local status
    ask GET "/instances/$1" || {
        [ "$outcome" != refused ] || { say "$1: is gone: $problem" && return 1; }
        return 0
    }
    status="$(jq -r '.data.status | strings' <<< "$answer")"
    [ "$status" = active ] || { say "$1: is $status" && return 1; }
}

# note_busy ID PERCENT: the busy share of its GPUs, for the number of machines.
note_busy() {
    [ -z "$2" ] || { echo "$2" > "$fleet/new.busy.$1" && mv -f "$fleet/new.busy.$1" "$fleet/busy.$1"; }
}

# say_log ID: the end of the job's log, which is kept.
say_log() {
    there 'tail -n 20 log' < /dev/null > "$fleet/log.$1" 2> /dev/null || return 0
    tail -n 3 "$fleet/log.$1" | while IFS= read -r line; do say "$1: $line"; done
}
