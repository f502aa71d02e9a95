#!/usr/bin/env bash
# Times whisper-transcribe over many recordings, loading and mel included: WAV files of 5 s to 5 min,
# one in 25 up to 2 h, made by rule of the samples.
#
#   usage: bench/recordings.sh FOLDER COUNT MELS [OPTION...]     whisper-transcribe's options
#          bench/recordings.sh /tmp/recordings 500 80 --model demo --device cuda
#
# FOLDER gets the recordings, which stay, and their transcripts. mel is run for several recordings
# at a time ahead of the transcriber, which reads them in their order. Prints the seconds of audio,
# the windows of 30 s, the seconds that it took, and both rates. mel and whisper-transcribe are
# those on the PATH, or of this source tree.
set -euo pipefail
[ $# -ge 3 ] && [[ "$2" =~ ^[1-9][0-9]*$ ]] ||
    { echo "usage: $0 FOLDER COUNT MELS [OPTION...]" >&2; exit 2; }
mkdir -p "$1"
folder="$(cd "$1" && pwd)" count="$2" mels="$3" jobs="$(nproc)"
shift 3
cd "$(dirname "$0")/.."
PATH="$PATH:$PWD/build/bin"

# wav SECONDS OFFSET: a recording of the pool's bytes from OFFSET on, again and again.
wav() {
    local bytes=$(($1 * 32000)) size
    size=$(stat -c %s "$folder/pool")
    printf 'RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data'
    printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((bytes & 255)) $((bytes >> 8 & 255)) \
        $((bytes >> 16 & 255)) $((bytes >> 24 & 255)))"
    {
        tail -c "+$(($2 % size / 2 * 2 + 1))" "$folder/pool"
        for ((done = 0; done < bytes; done += size)); do cat "$folder/pool"; done
    } 2> /dev/null | head -c "$bytes" || [ $? -eq 141 ]  # cat, whose reader has enough
}

if [ "$(cat "$folder/made" 2> /dev/null)" != "$count" ]; then
    rm -f "$folder"/*.wav
    for sample in samples/*.wav; do tail -c +45 "$sample"; head -c 32000 /dev/zero; done > "$folder/pool"
    for i in $(seq 0 $((count - 1))); do
        # Lengths grow by the same factor from one to the next.
        seconds=$(awk -v i="$i" -v n="$count" 'BEGIN {
            print int(i % 25 < 24 ? 5 * 60 ^ (i / n) : 300 * 24 ^ (i / n)) }')
        wav "$seconds" $((i * 123456)) > "$folder/$(printf '%03d' "$i").wav"
        echo "$seconds"
    done > "$folder/lengths"
    echo "$count" > "$folder/made"
fi
read -r seconds windows < <(awk '{ s += $1; w += int(($1 + 29) / 30) } END { print s, w }' \
    "$folder/lengths")

rm -rf "$folder/mel" "$folder/out"
mkdir "$folder/mel"
began=$EPOCHREALTIME
ls "$folder"/*.wav | xargs -P "$jobs" -I{} sh -c '
    name="$(basename "$1" .wav)"
    mel --threads 1 --mels "$2" < "$1" > "$3/$name.part" && mv "$3/$name.part" "$3/$name"' \
    _ {} "$mels" "$folder/mel" &
mels_running=$!
trap 'kill "$mels_running" 2> /dev/null || true' EXIT
for file in "$folder"/*.wav; do
    name="$folder/mel/$(basename "$file" .wav)"
    until [ -f "$name" ]; do
        kill -0 "$mels_running" 2> /dev/null || [ -f "$name" ] || exit 1  # a mel has failed
        sleep 0.005
    done
    cat "$name"
    rm "$name"
done | whisper-transcribe --format jsonl --output-dir "$folder/out" --summary "$folder/summary" "$@"
wait "$mels_running"
trap - EXIT
awk -v audio="$seconds" -v windows="$windows" -v wall="$(echo "$EPOCHREALTIME $began" |
    awk '{ print $1 - $2 }')" -v done="$(($(wc -l < "$folder/summary") - 1))" 'BEGIN {
    printf "recordings\taudio s\twindows\twall s\tx real time\twindows/s\n"
    printf "%d\t%d\t%d\t%.2f\t%.0f\t%.1f\n", done, audio, windows, wall, audio / wall, windows / wall }'
