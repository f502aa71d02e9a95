# Sourced by hark lambda: run. The recordings are cut into shards, files of .hark/lambda/shards with a
# line each: path, tab, path there. A machine claims a shard by making its folder in claims/, and
# done/ has the shard's failures once all its outputs are here.
# shellcheck shell=bash disable=SC2154,SC2034

readonly most_attempts=3 # machines that may fail with a shard

run_recordings() {
    exists="exists; move it, or use another --output-dir"
    use_programs ssh ssh-keygen rsync tar
    use_tools || exit
    inputs=("${arguments[@]}")
    [ ${#inputs[@]} -gt 0 ] || [ -n "$list" ] || wrong "run: expected a folder, a recording or --files-from FILE"
    check_package
    set_job whisper-transcribe audio-decode
    formats=srt,text
    for ((i = 0; i < ${#job_options[@]}; i++)); do
        [ "${job_options[i]}" != --format ] || formats="${job_options[i + 1]}"
    done
    set_endings "$formats"
    collect
    recall
    if [ ${#todo[@]} -gt 0 ]; then
        say "${#todo[@]} of ${#recordings[@]} recordings to transcribe"
        [ "$most" -le $(((${#todo[@]} + shard - 1) / shard)) ] || most=$(((${#todo[@]} + shard - 1) / shard))
        [ "$least" -le "$most" ] || least="$most"
        say_cost "$most"
    fi
    [ -z "$dry_run" ] || return 0
    lock_output
    [ -n "$retry" ] || take_done
    if [ ${#todo[@]} -gt 0 ]; then
        make_shards
        run_fleet work_on_shards count_shards
        take_done
    else
        end_leftovers
    fi
    report_run
}

# lock_output: one command at a time works on the folder, hark batch included. The processes of one
# that was killed end by themselves.
lock_output() {
    make_folder "$output/.hark/lambda" || exit 1
    fleet="$(realpath -- "$output")/.hark/lambda"
    exec {lock}> "$output/.hark/lock" || exit 1
    flock -n "$lock" || {
        say "$output: another command is writing there; waiting two minutes for its end"
        flock -w 120 "$lock" || die "$output: another command is writing there"
    }
    [ -s "$fleet/run" ] || od -An -N4 -tx1 /dev/urandom | tr -d ' \n' > "$fleet/run"
    run="$(< "$fleet/run")"
}

# take_done: the failures of the shards that are done become those of the folder.
take_done() {
    local file work="$fleet"
    for file in "$fleet"/done/*; do
        [ ! -f "$file" ] || recall_failures "$file"
    done
    recall
    write_failures
}

# make_shards: of what is to be done. Those that a machine has stay if the job is the same.
make_shards() {
    local path key file number wanted index absolute=() size="$shard"
    local -A group=() taken=()
    wanted="$(printf '%s\n' "$package_sum" "${job_options[@]}" | cksum)"
    [ "$wanted" = "$(cat "$fleet/job" 2> /dev/null)" ] || rm -rf "$fleet/claims"
    mkdir -p "$fleet"/{shards,claims,done,attempts}
    echo "$wanted" > "$fleet/job"
    for file in "$fleet"/shards/*; do
        [ -f "$file" ] || continue
        number="${file##*/}"
        if [ -d "$fleet/claims/$number" ] && [ ! -e "$fleet/done/$number" ]; then
            while IFS=$'\t' read -r _ path _; do taken[$path]=yes; done < "$file"
        else
            rm -rf "$file" "$fleet"/{claims,done,attempts}/"$number"
        fi
    done
    number="$(cat "$fleet/last" 2> /dev/null || echo 0)"
    [ ${#todo[@]} -eq 0 ] ||
        mapfile -d '' -t absolute < <(printf '%s\0' "${todo[@]}" | xargs -0 realpath -zsm --)
    for index in "${!todo[@]}"; do
        path="${todo[$index]}" file="${absolute[$index]}"
        set_group "$path"
        [ -z "${taken[$file]:-}" ] || continue
        if [ -z "${group[$key]:-}" ]; then
            [ "$size" -lt "$shard" ] || { number=$((number + 1)) size=0 && echo "$number" > "$fleet/last"; }
            group[$key]="$number"
        fi
        size=$((size + 1))
        printf '%s\t%s\t%s\n' "$path" "$file" "$there" >> "$fleet/shards/${group[$key]}"
    done
}

# set_group RECORDING: sets `there`, its path within the folders there, and `key`, which recordings share
# if the names of their transcripts may depend on one another: they are in one shard.
set_group() {
    local folder="${target[$1]%/*}/" name="${1##*/}"
    folder="${folder#"$output/"}"
    there="$folder$name" key="${name:1}" key="${name:0:1}${key%%.*}"
    key="$folder${key:0:200}"
}

# count_shards: sets `unclaimed`, those that no machine has, and `undone`, those not done.
count_shards() {
    local file number
    unclaimed=0 undone=0
    for file in "$fleet"/shards/*; do
        number="${file##*/}"
        [ -f "$file" ] && [ ! -e "$fleet/done/$number" ] || continue
        undone=$((undone + 1))
        [ -d "$fleet/claims/$number" ] || unclaimed=$((unclaimed + 1))
    done
}

# release_claims ID...: shards of other machines than these are free again.
release_claims() {
    local folder owner
    for folder in "$fleet"/claims/*; do
        [ -d "$folder" ] || continue
        owner="$(cat "$folder/instance" 2> /dev/null)"
        [ -n "$owner" ] && [[ " $* " == *" $owner "* ]] || rm -rf "$folder"
    done
}

# claim_shard ID: sets `number` to the shard that the machine has, or to one that is free. Returns 1 if
# none is left, or the machine is to go.
claim_shard() {
    local file
    for file in "$fleet"/claims/*/instance; do
        [ "$(cat "$file" 2> /dev/null)" = "$1" ] || continue
        number="${file%/instance}" number="${number##*/}"
        [ -e "$fleet/done/$number" ] || return 0
    done
    [ ! -e "$fleet/retire.$1" ] || return 1
    while IFS= read -r number; do
        [ ! -e "$fleet/done/$number" ] && mkdir "$fleet/claims/$number" 2> /dev/null || continue
        echo "$1" > "$fleet/claims/$number/instance"
        return 0
    done < <(cd "$fleet/shards" && printf '%s\n' * | sort -n)
    return 1
}

# work_on_shards ID: until none is left. Returns 3 if the machine is lost.
work_on_shards() {
    local number attempts
    while claim_shard "$1"; do
        do_shard "$1" && continue
        attempts=$(($(cat "$fleet/attempts/$number" 2> /dev/null || echo 0) + 1))
        echo "$attempts" > "$fleet/attempts/$number"
        [ "$attempts" -lt "$most_attempts" ] ||
            die "shard $number: $attempts machines failed with it; the end of a log is in $fleet"
        return 3
    done
}

# do_shard ID: the shard `number`: recordings up, hark batch, transcripts down. Returns 3 if the machine
# is lost, or has left recordings undone.
do_shard() {
    local job="$run-$number"
    clear_job "$job"
    case $? in
        0)
            send_recordings || { say "$1: shard $number: cannot send its recordings" && return 3; }
            start_job "hark batch -o out $(quoted "${job_options[@]}") in" || return
            ;;
        3) return 3 ;;
    esac
    follow_job "$1" fetch_transcripts || return
    check_shard "$1"
}

# send_recordings: those of the shard `number`, by links in a folder of their names there.
send_recordings() {
    local stage="$work/stage.$number" path file place ending
    while IFS=$'\t' read -r path file place; do
        # To hark batch they are its own, so that it may replace them.
        for ending in "${endings[@]}"; do printf '%s\n' "${target[$path]#"$output/"}.$ending"; done \
            >> "$output/.hark/written"
        mkdir -p "$stage/$(dirname -- "$place")" && ln -sfn -- "$file" "$stage/$place" || return
    done < "$fleet/shards/$number"
    patiently copy_files -L "$stage/" hark:hark/job/in/ || return
    rm -rf "$stage"
}

fetch_transcripts() {
    patiently copy_files --exclude .hark --exclude /failed.tsv hark:hark/job/out/ "$output/" 2> /dev/null
}

# check_shard ID: each recording of the shard `number` has its transcripts, or is in the list of
# failures, which comes down last.
check_shard() {
    local failures="$fleet/failures.$number" path place
    local -A failed=()
    [ "$job_status" != 2 ] || { say_log "$1" && die "hark batch does not take its options there"; }
    : > "$failures.there"
    there 'cat out/failed.tsv 2> /dev/null || true' < /dev/null > "$failures.there" || return 3
    while IFS=$'\t' read -r path error; do failed[${path#in/}]="$error"; done < "$failures.there"
    : > "$failures"
    while IFS=$'\t' read -r path _ place; do
        if [ -n "${failed[$place]:-}" ]; then
            printf '%s\t%s\n' "$path" "${failed[$place]//in\/$place/$path}" >> "$failures"
        elif ! finished "$path"; then
            say "$1: shard $number: no transcript of $path (exit status $job_status)"
            say_log "$1"
            return 3
        fi
    done < "$fleet/shards/$number"
    rm -f "$failures.there"
    mv -f "$failures" "$fleet/done/$number"
}

report_run() {
    local failed there
    count_outcomes
    say "$there transcribed, $failed failed, ${#todo[@]} left"
    advise_on_failed
    [ "$failed" -eq 0 ] && [ ${#todo[@]} -eq 0 ]
}
