#!/usr/bin/env bash
# stories.sh TREE WORK: for tests/cluster.sh, in the chroot: starts the daemons, and runs the stories.
set -uo pipefail
tree="$1" work="$2"
model="$tree/models/whisper-demo"
slurm="$tree/pipelines/slurm.sh"

fail() {
    echo "cluster.sh: $*" >&2
    tail -n 20 "$work"/*/.slurm/*.log /tmp/slurm/*.log >&2 2> /dev/null
    exit 1
}

start_slurm() {
    install -d -o munge -m 755 /run/munge /var/log/munge /var/lib/munge
    [ -s /etc/munge/munge.key ] || runuser -u munge -- mungekey --create
    runuser -u munge -- munged --force || fail "munged does not start"
    slurmctld -c -L /tmp/slurm/ctld.log || fail "slurmctld does not start"
    slurmd -N hark1 -L /tmp/slurm/d.log || fail "slurmd does not start"
    until_true 30 "[ \"\$(sinfo -h -o %T)\" = idle ]" || fail "the node is not idle: $(sinfo -h -o '%T %E')"
}

# until_true SECONDS CONDITION
until_true() {
    local tries
    for ((tries = 0; tries < $1 * 5; tries++)); do
        eval "$2" && return
        sleep 0.2
    done
    return 1
}

# submit OPTION...: sets `array` and `merge`, the numbers of the jobs, in the folder `out`.
submit() {
    local numbers
    numbers="$("$slurm" --shards "$work/shards" --output-dir "$out" --stale 20 "$@" -- --model "$model" \
        --threads 1)" || fail "hark slurm $*"
    read -r array merge <<< "$numbers"
}

# finish: waits for both jobs.
finish() {
    until_true 300 "scontrol show job $merge | grep -qE 'JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT)'" ||
        fail "job $merge does not end: $(squeue)"
}

# expect_same: the results are those of one machine.
expect_same() {
    hark-shard check "$work/shards" "$out" || fail "$1: something is missing"
    cmp "$work/one.jsonl" "$out/merged.jsonl" || fail "$1: other bytes than one machine's"
    echo "ok: $1"
}

start_slurm
echo "Slurm: $(sinfo --version)"
mkdir "$work/in"
for n in 1 2 3; do
    for name in sea road key hat answer rain stranger harbour; do
        cp "$tree/samples/$name".* "$work/in/$n-$name.wav"
    done
done
hark-shard plan "$work/in" -o "$work/shards" --shard-size 4 2> /dev/null || fail "hark-shard plan"
"$tree/pipelines/worker.sh" --shards "$work/shards" -o "$work/one" -- --model "$model" --threads 1 \
    2> "$work/one.log" || fail "one worker: $(cat "$work/one.log")"
hark-shard merge "$work/shards" "$work/one" > "$work/one.jsonl" || fail "hark-shard merge"

out="$work/array"
submit --elements 2
finish
expect_same "an array job of two elements and its merge"

# The shortest limit is a minute: the element stops 50 s before it.
out="$work/limit"
submit --elements 1 --time 1 --ahead 50
until_true 120 "grep -q Requeue=1 <(scontrol show job ${array}_1) &&
    [ \"\$(scontrol show job ${array}_1 | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p' | head -n 1)\" -ge 1 ]" ||
    fail "the element was not queued again: $(scontrol show job "${array}_1")"
echo "ok: an element near its limit is queued again ($(ls "$out"/*.done 2> /dev/null | wc -l) shards done)"
# Slurm waits two minutes before a job begins again.
scontrol update jobid="${array}_1" starttime=now timelimit=10 2> /dev/null || true
finish
expect_same "a run that reached its limit"

out="$work/cancelled"
submit --elements 2
until_true 60 "[ -n \"\$(ls $out/*.done 2> /dev/null)\" ]" || fail "no shard is done"
scancel --batch --signal=TERM "${array}_1"
scancel "${array}_2"
finish
[ ! -e "$out/merged.jsonl" ] || fail "merged without all shards"
submit --elements 2
finish
expect_same "a run that was cancelled, and begun again"

out="$work/node"
submit --elements 2
until_true 60 "[ -n \"\$(ls $out/*.done 2> /dev/null)\" ]" || fail "no shard is done"
# The workers end with their machine, without a signal that they could answer.
scontrol update nodename=hark1 state=down reason=test
kill -KILL $(cut -d ' ' -f 3 "$out"/.claims/.worker.*)
until_true 30 "scontrol show job ${array}_1 | grep -q Restarts=1" || fail "no element was queued again"
[ -n "$(ls "$out/.claims")" ] || fail "no claim is left"
[ "$(sinfo -h -o %T)" = idle ] || scontrol update nodename=hark1 state=resume
for n in 1 2; do scontrol update jobid="${array}_$n" starttime=now 2> /dev/null; done
finish
expect_same "a node that was lost"
echo "all stories passed"
