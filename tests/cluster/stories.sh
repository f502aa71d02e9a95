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
submit --elements 2 --sbatch --partition=other --sbatch --mem=300 --merge-sbatch --time=7
both="$(scontrol show job "$merge")"
[[ "$both" == *Partition=other* && "$both" == *TimeLimit=00:07:00* && "$both" != *300M* ]] ||
    fail "the merge job has other options: $both"
[[ "$(scontrol show job "${array}_1")" == *Partition=other*300M* ]] || fail "the array job has other options"
finish
expect_same "an array job of two elements and its merge, in a partition of its choice"

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
# The workers end with their machine, without a signal that they could answer, and nobody reports their end.
steps="$(grep -lsx slurmstepd /proc/[0-9]*/comm | cut -d / -f 3)"
kill -STOP $steps
kill -KILL $(cut -d ' ' -f 3 "$out"/.claims/.worker.*)
scontrol update nodename=hark1 state=down reason=test
kill -CONT $steps
until_true 30 "scontrol show job ${array}_1 | grep -q Restarts=1" || fail "no element was queued again"
[ -n "$(ls "$out/.claims")" ] || fail "no claim is left"
[ "$(sinfo -h -o %T)" = idle ] || scontrol update nodename=hark1 state=resume
for n in 1 2; do scontrol update jobid="${array}_$n" starttime=now+3 2> /dev/null; done
finish
expect_same "a node that was lost"

# By turns the script alone is killed, whose sbatch may still submit, and all that it runs. Held jobs stay in the queue.
RANDOM=11
for ((n = 0; n < 20; n++)); do
    out="$work/kills$n"
    command=("$slurm" --shards "$work/shards" --output-dir "$out" --elements 2 --sbatch --hold -- --model "$model")
    begun="${EPOCHREALTIME/./}"
    [ "$n" -gt 0 ] || { "${command[@]}" > /dev/null 2>&1 && took=$((${EPOCHREALTIME/./} - begun)) && continue; }
    setsid "${command[@]}" > /dev/null 2>&1 &
    printf -v moment %07d $((RANDOM * took / 32768))
    sleep "${moment:0:-6}.${moment: -6}"
    kill -KILL $([ $((n % 2)) = 0 ] || echo -- -)$! 2> /dev/null
    wait $! 2> /dev/null
    read -r array merge <<< "$("${command[@]}" 2> "$work/said")" || fail "hark slurm after a kill: $(cat "$work/said")"
    name="$(squeue -h -j "$array" -o %j | head -n 1)"
    [ "$(squeue -h --name "$name" -o %F | sort -u) $(squeue -h --name "$name-merge" -o '%F %E')" = \
        "$array $merge afterany:${array}_*(unfulfilled)" ] || fail "after kill $n: $(squeue -o '%F %j %E')"
    [ "$("${command[@]}" 2> /dev/null)" = "$array $merge" ] || fail "the same command names other jobs"
done
scancel --me
echo "ok: 20 kills of hark slurm lose no job and submit none twice"

# gpt-train's two ranks find one another by a file, without MPI.
for ((i = 0; i < 2000; i++)); do echo "Line $((i * i % 997)), and the king said no."; done > "$work/text"
gpt-tokenize --train-tokenizer --vocab-size 256 --output-dir "$work/tok" "$work/text" 2> /dev/null ||
    fail "gpt-tokenize"
gpt-tokenize --tokenizer "$work/tok" "$work/text" > "$work/train.bin" || fail "gpt-tokenize"
train() { # OUT [OPTION of srun]: as a job of its own; without an option the ranks meet by a file
    local meeting="--rendezvous $1.meeting"
    [ $# = 1 ] || meeting=""
    cat > "$1.sh" <<END
#!/bin/bash
#SBATCH --ntasks 2 --requeue --open-mode append --output $1.log
export OMPI_MCA_mpi_yield_when_idle=1 # ranks that wait leave the cores to others
srun --ntasks 2 --kill-on-bad-exit ${2:-} gpt-train --train $work/train.bin --tokenizer $work/tok --layers 2 \
    --width 32 --heads 2 --sequence-length 32 --batch-size 4 --steps 1000 --save-every 50 --threads 1 --device cpu \
    --output-dir $1 $meeting
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

# The same by MPI: Slurm's PMIx tells the ranks where they are.
srun --mpi=list 2>&1 | grep -qw pmix || fail "this Slurm has no PMIx: $(srun --mpi=list 2>&1)"
train "$work/pmix" --mpi=pmix
until_done "$work/pmix"
for file in model optimizer; do
    cmp "$work"/{whole,pmix}/step-00001000/$file.safetensors || fail "srun --mpi=pmix: other bits than without MPI"
done
echo "ok: gpt-train under srun --mpi=pmix"
echo "all stories passed"
