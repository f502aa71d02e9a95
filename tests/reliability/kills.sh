#!/usr/bin/env bash
# kill -9 of a stage of pipelines/batch.sh, or of batch.sh itself, at random moments: whatever has its
# final name is whole, the same bytes as a run that nothing disturbed has written, and a rerun
# completes. Not part of tests/run.sh, since it takes minutes.
#
#   usage: tests/reliability/kills.sh FOLDER [KILLS]      (100 unless told)
#
# FOLDER is new or empty.
set -uo pipefail
source="$(cd "$(dirname "$0")/../.." && pwd)"
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [KILLS]" >&2; exit 2; }
folder="$1" kills="${2:-100}"
mkdir -p "$folder" || exit
[ -z "$(ls -A "$folder")" ] || { echo "$folder: expected a new or empty folder" >&2; exit 2; }
recordings="$folder/recordings"
mkdir "$recordings"
for ((i = 0; i < 8; i++)); do
    for sample in alarm answer harbour hat key; do
        cp "$source/samples/$sample.wav" "$recordings/$sample$i.wav"
    done
done
formats=text,srt,vtt,json
batch() { # OUTPUT OPTION...
    "$source/pipelines/batch.sh" --format "$formats" --output-dir "$1" --retry "$recordings" \
        --model demo
}
# stage_of RUN STAGE: the process, RUN itself or one below it, whose program is STAGE; or nothing.
stage_of() {
    local pid program
    for pid in $(ps -e -o pid=,ppid= | awk -v run="$1" '
        { parent[$1] = $2 }
        END { for (pid in parent) { for (p = pid; p != run && p > 1; p = parent[p]); if (p == run) print pid } }'); do
        program=$(ps -o args= -p "$pid" | awk '{ n = split($1 ~ /bash$/ ? $2 : $1, path, "/"); print path[n] }')
        [ "$program" = "$2" ] && echo "$pid" && return
    done
}

began=$EPOCHREALTIME
batch "$folder/expected" 2> "$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
seconds=$(awk "BEGIN { print $EPOCHREALTIME - $began }")
rm -rf "$folder/expected/.hark"

RANDOM=1
stages=(audio-decode mel whisper-transcribe batch.sh)
hit=0 reruns=0 half=0
declare -A killed=()
while [ "$hit" -lt "$kills" ]; do
    # Where an earlier round has finished there is nothing to kill.
    finished=$(find "$folder/out" -name '*.json' 2> /dev/null | wc -l)
    [ "$finished" -lt 40 ] || rm -rf "$folder/out"
    reruns=$((reruns + 1))
    set -m
    batch "$folder/out" > /dev/null 2>> "$folder/errors" &
    run=$!
    set +m
    sleep "$(awk "BEGIN { print $RANDOM / 32768 * $seconds }")"
    stage="${stages[$((RANDOM % 4))]}"
    victim=$(stage_of "$run" "$stage")
    if [ -n "$victim" ] && kill -9 "$victim" 2> /dev/null; then
        hit=$((hit + 1))
        killed[$stage]=$((${killed[$stage]:-0} + 1))
    fi
    wait "$run" 2> /dev/null
    # What a killed batch.sh has left running ends by itself, as nobody reads what it says.
    while IFS= read -r file; do
        cmp -s "$file" "$folder/expected/${file#"$folder/out/"}" || {
            echo "$file: not the bytes of a run that nothing disturbed" >&2
            half=$((half + 1))
        }
    done < <(find "$folder/out" -path "$folder/out/.hark" -prune -o -type f ! -name failed.tsv -print)
done
batch "$folder/out" 2>> "$folder/errors"
status=$?
rm -rf "$folder/out/.hark"
find "$folder/out" "$folder/expected" -name failed.tsv -size 0 -delete
diff -r "$folder/expected" "$folder/out" && same=yes || same=no
echo "$hit kills ($(for stage in "${stages[@]}"; do echo -n " $stage ${killed[$stage]:-0}"; done) )" \
    "in $reruns runs: $half half-written files; the last run: exit status $status, complete: $same"
[ "$half $status $same" = "0 0 yes" ]
