#!/usr/bin/env bash
# Times audio-decode | mel | whisper-transcribe over many recordings, loading included: files of 5 s
# to 5 min, one in 25 up to 2 h, made by rule of the samples.
#
#   usage: bench/recordings.sh FOLDER COUNT wav|mp3 MELS [OPTION...]     whisper-transcribe's options
#          bench/recordings.sh /tmp/recordings 500 wav 80 --model demo --device cuda
#          bench/recordings.sh --stages ...     also each stage alone, from files into cat
#
# FOLDER gets the recordings, which stay, and their transcripts. WAV has 16 kHz, one channel; MP3
# 44.1 kHz, two channels, 128 kbit/s without a bit reservoir, so that it can be cut anywhere. MP3 is
# made by ffmpeg, or of a FOLDER/pool.mp3 that another machine's ffmpeg made. Prints the seconds of
# audio, the windows of 30 s, the seconds that the pipe took, and both rates. The tools are those on
# the PATH, or of this source tree.
set -euo pipefail
stages=""
[ "${1:-}" != --stages ] || { stages=yes && shift; }
[ $# -ge 4 ] && [[ "$2" =~ ^[1-9][0-9]*$ && "$3" =~ ^(wav|mp3)$ ]] ||
    { echo "usage: $0 [--stages] FOLDER COUNT wav|mp3 MELS [OPTION...]" >&2; exit 2; }
mkdir -p "$1"
folder="$(cd "$1" && pwd)" count="$2" format="$3" mels="$4"
shift 4
cd "$(dirname "$0")/.."
PATH="$PATH:$PWD/build/bin"

# cut POOL BYTES OFFSET: that many of the pool's bytes from OFFSET on, again and again.
cut() {
    local size
    size=$(stat -c %s "$1")
    {
        tail -c "+$(($3 % size + 1))" "$1"
        for ((done = 0; done < $2; done += size)); do cat "$1"; done
    } 2> /dev/null | head -c "$2" || [ $? -eq 141 ]  # cat, whose reader has enough
}

# wav SECONDS NUMBER
wav() {
    local bytes=$(($1 * 32000))
    printf 'RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data'
    printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((bytes & 255)) $((bytes >> 8 & 255)) \
        $((bytes >> 16 & 255)) $((bytes >> 24 & 255)))"
    cut "$folder/pool" "$bytes" $(($2 * 123456))
}

# mp3 SECONDS NUMBER: 49 frames, whose padding repeats after them, have 20480 bytes and 1.28 s.
mp3() { cut "$folder/pool.mp3" $(($1 * 100 / 128 * 20480)) $(($2 * 20480)); }

if [ "$(cat "$folder/made" 2> /dev/null)" != "$count $format" ]; then
    rm -f "$folder"/[0-9]*.{wav,mp3}
    for sample in samples/*.wav; do tail -c +45 "$sample"; head -c 32000 /dev/zero; done > "$folder/pool"
    [ "$format" = wav ] || [ -f "$folder/pool.mp3" ] ||
        ffmpeg -v error -f s16le -ar 16000 -ac 1 -i "$folder/pool" -af \
            'aresample=44100,pan=stereo|c0=c0|c1=c0,adelay=0|7' -c:a libmp3lame -b:a 128k \
            -reservoir 0 -write_xing 0 -id3v2_version 0 -f mp3 "$folder/pool.mp3"
    for i in $(seq 0 $((count - 1))); do
        # Lengths grow by the same factor from one to the next.
        seconds=$(awk -v i="$i" -v n="$count" 'BEGIN {
            print int(i % 25 < 24 ? 5 * 60 ^ (i / n) : 300 * 24 ^ (i / n)) }')
        "$format" "$seconds" "$i" > "$folder/$(printf '%03d' "$i").$format"
        echo "$seconds"
    done > "$folder/lengths"
    echo "$count $format" > "$folder/made"
fi
read -r seconds windows < <(awk '{ s += $1; w += int(($1 + 29) / 30) } END { print s, w }' \
    "$folder/lengths")

transcribe() {
    rm -rf "$folder/out"
    whisper-transcribe --format jsonl --output-dir "$folder/out" --summary "$folder/summary" "$@"
}

# rate NAME BEGAN: what was done since then.
rate() {
    awk -v name="$1" -v audio="$seconds" -v windows="$windows" -v began="$2" -v now="$EPOCHREALTIME" 'BEGIN {
        wall = now - began
        printf "%s\t%d\t%d\t%.2f\t%.0f\t%.1f\n", name, audio, windows, wall, audio / wall, windows / wall }'
}

printf 'recordings\taudio s\twindows\twall s\tx real time\twindows/s\n'
if [ -n "$stages" ]; then
    began=$EPOCHREALTIME
    audio-decode "$folder"/[0-9]*."$format" | cat > /dev/null
    rate audio-decode "$began"
    audio-decode "$folder"/[0-9]*."$format" > "$folder/audio.stream"
    began=$EPOCHREALTIME
    mel --mels "$mels" < "$folder/audio.stream" | cat > /dev/null
    rate mel "$began"
    mel --mels "$mels" < "$folder/audio.stream" > "$folder/mel.stream"
    rm "$folder/audio.stream"
    began=$EPOCHREALTIME
    transcribe "$@" < "$folder/mel.stream"
    rate whisper-transcribe "$began"
    rm "$folder/mel.stream"
fi
began=$EPOCHREALTIME
audio-decode "$folder"/[0-9]*."$format" | mel --mels "$mels" | transcribe "$@"
rate "$(($(wc -l < "$folder/summary") - 1))" "$began"
