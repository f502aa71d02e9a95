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
# Slurm waits two minutes before a job begins again. In the second of its end slurmd starts it no more.
scontrol update jobid="${array}_1" starttime=now+3 timelimit=10 2> /dev/null || true
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
for n in 1 2; do scontrol update jobid="${array}_$n" starttime=now+3 2> /dev/null; done
finish
expect_same "a node that was lost"

# gpt-train's two ranks find one another by a file: this Slurm has no MPI.
for ((i = 0; i < 2000; i++)); do echo "Line $((i * i % 997)), and the king said no."; done > "$work/text"
gpt-tokenize --train-tokenizer --vocab-size 256 --output-dir "$work/tok" "$work/text" 2> /dev/null ||
    fail "gpt-tokenize"
gpt-tokenize --tokenizer "$work/tok" "$work/text" > "$work/train.bin" || fail "gpt-tokenize"
train() { # OUT: as a job of its own
    cat > "$1.sh" <<END
#!/bin/bash
#SBATCH --ntasks 2 --requeue --open-mode append --output $1.log
srun --ntasks 2 --kill-on-bad-exit gpt-train --train $work/train.bin --tokenizer $work/tok --layers 2 \
    --width 32 --heads 2 --sequence-length 32 --batch-size 4 --steps 1000 --save-every 50 --threads 1 --device cpu \
    --output-dir $1 --rendezvous $1.meeting
END
    job="$(sbatch --parsable "$1.sh")" || fail "sbatch"
}
until_done() {
    until_true 300 "scontrol show job $job | grep -qE 'JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT)'"
    scontrol show job "$job" | grep -q JobState=COMPLETED || fail "job $job: $(tail -n 5 "$1.log")"
}
train "$work/whole"
until_done "$work/whole"
train "$work/again"
until_true 120 "[ -e $work/again/step-00000100 ]" || fail "no checkpoint: $(cat "$work/again.log")"
scontrol requeue "$job" || fail "scontrol requeue"
until_true 60 "scontrol show job $job | grep -q Restarts=1" || fail "the job was not queued again"
[ ! -e "$work/again/step-00001000" ] || fail "the run had ended before it was queued again"
scontrol update jobid="$job" starttime=now 2> /dev/null || true
until_done "$work/again"
for file in model optimizer; do
    cmp "$work"/{whole,again}/step-00001000/$file.safetensors || fail "srun: other bits after a requeue"
done
echo "ok: gpt-train under srun, and killed and queued again"
echo "all stories passed"
