#!/usr/bin/env bash
# Usage: hark slurm [OPTION]... [-- BATCH_OPTION...]
# Transcribes the shards of a plan on a cluster, by an array job of Slurm.
#
# Each element of the array is a hark worker, which takes shards until none is
# left. Before its time limit it stops, and is queued again; recordings that are
# done stay done. A second job merges all results to DIR/merged.jsonl, or says
# what is missing. The same command continues; of jobs that wait or run it
# submits no second one. stdout has the numbers of both jobs. What follows --
# are options of hark batch.
#
# The merge job needs no GPU: of --sbatch it has the options that say who pays
# and where (--account, --partition, --qos, --reservation, --wckey, --export,
# --chdir, --mail-type, --mail-user), and those of --merge-sbatch after them.
#
# Options:
#       --shards DIR        the folder that hark-shard plan has written
#   -o, --output-dir DIR    where results are published
#       --elements N        of the array: workers at the same time [8]
#       --time TIME         limit of an element, as sbatch takes it [4:00:00]
#       --ahead SECONDS     before the limit, when an element stops [120]
#       --sbatch OPTION     of sbatch, such as --gres=gpu:1; may be repeated
#       --merge-sbatch OPT  of sbatch, for the merge job alone; may be repeated
#       --only NAME,...     work on these shards alone
#       --stale SECONDS     of silence after which another worker is lost [600]
#       --scratch DIR       where recordings are fetched to [in --output-dir]
#       --price DOLLARS     per hour of a machine: prints what the work costs
#       --speed X           times real time of a machine [that of shards done]
#       --dry-run           print what is to do and its cost; run nothing
#   -h, --help              print a short help and exit
#
# Examples:
#   hark shard plan lectures -o shards
#   hark slurm --shards shards -o results --sbatch --gres=gpu:1 -- --model small
set -uo pipefail
export LC_ALL=C.UTF-8
script="hark slurm"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
. "$here/shards.sh"
help_if_asked "$@"

elements=8 limit=4:00:00 ahead=120 sbatch_options=() merge_options=()

take_own_option() {
    case "$flag" in
        --elements) elements="$value" ;;
        --time) limit="$value" ;;
        --ahead) ahead="$value" ;;
        --sbatch) sbatch_options+=("$value") ;;
        --merge-sbatch) merge_options+=("$value") ;;
    esac
}

# check_sbatch_option FLAG EXAMPLE OPTION
check_sbatch_option() {
    [[ "$3" == --?* ]] || wrong "$1: expected an option such as $2, got '$3'"
    [[ "$3" != --job-name* ]] || wrong "$1: $3: hark finds its jobs by their names"
}

check_options() {
    local option
    [[ "$elements" =~ ^[1-9][0-9]{0,3}$ ]] || wrong "--elements: expected 1 to 9999, got '$elements'"
    [[ "$limit" =~ ^([0-9]+-)?[0-9]+(:[0-9]+){0,2}$ ]] ||
        wrong "--time: expected minutes, or hours, minutes and seconds such as 4:00:00, got '$limit'"
    [[ "$ahead" =~ ^[1-9][0-9]{0,3}$ ]] || wrong "--ahead: expected 1 to 9999 seconds, got '$ahead'"
    for option in "${sbatch_options[@]}"; do check_sbatch_option --sbatch --gres=gpu:1 "$option"; done
    for option in "${merge_options[@]}"; do
        check_sbatch_option --merge-sbatch --partition=cpu "$option"
        [[ ! "$option" =~ ^--(comment|dependency)(=|$) ]] ||
            wrong "--merge-sbatch: $option: hark sets it, so that the merge job follows its array job"
    done
    check_shard_options
}

# write_jobs: the scripts that Slurm runs. USR1 is the time limit's alone; TERM is that of scancel and of
# a preemption, after which Slurm itself decides.
write_jobs() {
    local worker
    worker="$(worker_command ${only:+--only "$only"})"
    cat > "$jobs/worker.sh" <<END || exit 1
#!/bin/bash
# An element of hark slurm's array job.
# One that was queued again waits for shards of a lost machine: its own may be among them.
waiting=""
[ "\${SLURM_RESTART_COUNT:-0}" -eq 0 ] || waiting=--until-done
limited=""
trap 'limited=yes; kill -TERM "\$work" 2> /dev/null' USR1
trap 'kill -TERM "\$work" 2> /dev/null' TERM
$worker \$waiting -- $(quoted "${job_options[@]}") &
work=\$!
wait "\$work"
status=\$?
# A signal ends the first wait.
[ "\$status" -le 128 ] || { wait "\$work" 2> /dev/null; status=\$?; }
# 75: recordings could not be fetched now.
if [ -n "\$limited" ] || { [ "\$status" -eq 75 ] && [ "\${SLURM_RESTART_COUNT:-0}" -lt 3 ]; }; then
    scontrol requeue "\${SLURM_ARRAY_JOB_ID}_\$SLURM_ARRAY_TASK_ID" && sleep 60
fi
exit "\$status"
END
    cat > "$jobs/merge.sh" <<END || exit 1
#!/bin/bash
# The last job of hark slurm.
set -e
hark-shard merge $(quoted "$shards" "$output") > $(quoted "$output/.merged.part")
mv -f $(quoted "$output/.merged.part" "$output/merged.jsonl")
END
}

# begin_submitting: one hark slurm of a folder at a time. Its sbatch holds the lock too, if only the script
# was killed: the next one waits for what that submits. `name` is that of this folder's jobs.
begin_submitting() {
    local lock
    jobs="$output/.slurm"
    make_folder "$jobs" && exec {lock}> "$jobs/lock" || exit 1
    flock -w 600 "$lock" || die "$output: another hark slurm has submitted its jobs for ten minutes"
    name="hark-$(sha256sum <<< "$output" | cut -c 1-12)"
}

# queued NAME: sets `lines` to the jobs of that name that wait or run, a line each: number and comment.
queued() {
    lines="$(unset "${!SQUEUE_@}" && squeue --all --me --noheader --name="$1" --format='%F %k')" ||
        die "squeue does not answer; run the same command again"
}

# options_of_both: those of --sbatch that say who pays for a job and where it runs, not what a worker needs.
options_of_both() {
    local option
    for option in "${sbatch_options[@]}"; do
        case "${option%%=*}" in
            --account | --partition | --qos | --reservation | --wckey | --export | --chdir | --mail-type | \
                --mail-user) printf '%s\0' "$option" ;;
        esac
    done
}

# submit: what an earlier run of this folder has submitted is not submitted again. The merge job's comment
# is the array job that it waits for.
submit() {
    local array lines merge name both=()
    begin_submitting
    queued "$name"
    read -r array _ <<< "$lines"
    if [ -n "$array" ]; then
        say "array job $array is at work here already; to submit another, scancel it first"
    elif [ ${#todo[@]} -gt 0 ]; then
        write_jobs
        array="$(sbatch --parsable --job-name="$name" --array="1-$elements" --requeue --open-mode=append \
            --time="$limit" --signal="B:USR1@$ahead" --output="$jobs/%A_%a.log" "${sbatch_options[@]}" \
            "$jobs/worker.sh")" || die "sbatch does not take the array job"
        array="${array%%;*}"
        say "array job $array of $elements elements; the logs are in $jobs"
    fi
    queued "$name-merge"
    merge="$(awk -v array="$array" 'array == "" || $2 == array { print $1; exit }' <<< "$lines")"
    if [ -z "$merge" ]; then
        write_jobs
        mapfile -d '' -t both < <(options_of_both)
        merge="$(sbatch --parsable --job-name="$name-merge" --comment="${array:-none}" --open-mode=append \
            ${array:+--dependency="afterany:$array"} --output="$jobs/%A.log" "${both[@]}" "${merge_options[@]}" \
            "$jobs/merge.sh")" ||
            die "sbatch does not take the merge job; run the same command again"
    fi
    say "job ${merge%%;*} merges the results to $output/merged.jsonl"
    echo "${array:--} ${merge%%;*}"
}

# is_merged: all results are in merged.jsonl.
is_merged() {
    [ -e "$output/merged.jsonl" ] &&
        [ -z "$(find "$output" -maxdepth 1 -name '*.done' -newer "$output/merged.jsonl" -print -quit)" ]
}

learn_shard_flags --elements --time --ahead --sbatch --merge-sbatch
parse_shard_options "$@"
use_tools || exit
check_options
list_shards
[ "$elements" -le ${#todo[@]} ] || elements=${#todo[@]}
say_cost "$elements"
[ -n "$dry_run" ] || command -v sbatch > /dev/null || die "sbatch is not here; run this on a cluster's login node"
if [ ${#todo[@]} -eq 0 ] && { [ -n "$only$dry_run" ] || is_merged; }; then
    say "nothing is left: hark-shard merge joins the results"
elif [ -n "$dry_run" ]; then
    say "at most $(counted "$elements" element) of $limit each, and again as often as they reach that limit"
else
    submit
fi
