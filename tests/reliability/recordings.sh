#!/usr/bin/env bash
# 1,000 recordings of which 50 are broken in ten ways, through pipelines/batch.sh: expected are 950
# transcripts, 50 errors that name their recording, and exit status 1. Not part of tests/run.sh,
# since it takes minutes; needs ffmpeg.
#
#   usage: tests/reliability/recordings.sh FOLDER [WHISPER-TRANSCRIBE OPTION]...
#
# FOLDER is new or empty; the recordings (samples, cut and in nine other formats) and their
# transcripts stay there.
set -euo pipefail
source="$(cd "$(dirname "$0")/../.." && pwd)"
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [WHISPER-TRANSCRIBE OPTION]..." >&2; exit 2; }
folder="$1"
shift
[ $# -gt 0 ] || set -- --model demo
mkdir -p "$folder"
[ -z "$(ls -A "$folder")" ] || { echo "$folder: expected a new or empty folder" >&2; exit 2; }
recordings="$folder/recordings"
mkdir "$recordings"

# Five recordings in each of these, of which one sample's cuts differ.
formats=(wav flac mp3 ogg m4a mkv webm aiff mp4 wav)
samples=("$source"/samples/{alarm,answer,harbour,hat,key,mountain,road,sea,stranger,train}.wav)

made=0
while [ "$made" -lt 950 ]; do
    sample="${samples[$((made % 10))]}" format="${formats[$((made / 10 % 10))]}"
    # Each hundred begins 10 ms later in the sample.
    ffmpeg -nostdin -v error -ss "$(awk "BEGIN { print int($made / 100) / 100 }")" -i "$sample" \
        "$recordings/$(printf '%04d' "$made").$format"
    made=$((made + 1))
done

# break NUMBER FILE: writes a recording that is broken in one of ten ways.
bytes() { printf '%b' "$1"; }
wav_header() { # BYTES CHANNELS RATE FORMAT, little-endian as escapes
    bytes 'RIFF\xff\xff\xff\x7fWAVEfmt \x10\x00\x00\x00'
    bytes "$4$2$3"'\x00\x7d\x00\x00\x02\x00\x10\x00data'"$1"
}
one='\x01\x00' rate='\x80\x3e\x00\x00' some='\x00\x10\x00\x00'
for ((i = 0; i < 5; i++)); do
    name() { printf '%s/broken_%02d_%s' "$recordings" "$i" "$1"; }
    : > "$(name empty.wav)"
    head -c $((20000 + i)) "$source/samples/sea.wav" > "$(name cut.wav)"
    head -c $((30000 + i)) "$source/samples/family.flac" > "$(name cut.flac)"
    head -c $((5000 + i)) "$source/samples/room.m4a" > "$(name cut.m4a)"
    openssl enc -aes-128-ctr -K "$(printf '%032d' "$i")" -iv 0 -in "$source/samples/sea.wav" \
        2> /dev/null > "$(name noise.mp3)"
    head -c $((1000 + i)) "$source/README.md" > "$(name text.ogg)"
    wav_header '\xff\xff\xff\x7f' '\x00\x00' "$rate" "$one" > "$(name no_channels.wav)"
    wav_header "$some" "$one" '\x00\x00\x00\x00' "$one" > "$(name no_rate.wav)"
    wav_header "$some" "$one" "$rate" '\x99\x99' > "$(name no_such_codec.wav)"
    ffmpeg -nostdin -v error -f lavfi -i "color=size=64x64:duration=1.$i" "$(name picture.mp4)"
done

status=0
"$source/pipelines/batch.sh" --output-dir "$folder/out" "$recordings" "$@" 2> "$folder/errors" ||
    status=$?
transcripts=$(find "$folder/out" -name '*.txt' | wc -l)
subtitles=$(find "$folder/out" -name '*.srt' | wc -l)
named=$(grep -c "^$recordings/broken_.*	." "$folder/out/failed.tsv" || true)
failed=$(wc -l < "$folder/out/failed.tsv")
echo "$transcripts texts and $subtitles subtitles of 950, $failed errors of 50, $named of which" \
    "name one of the broken, exit status $status"
for kind in empty.wav cut.wav cut.flac cut.m4a noise.mp3 text.ogg no_channels.wav no_rate.wav \
    no_such_codec.wav picture.mp4; do
    grep -m1 "_$kind	" "$folder/out/failed.tsv" || echo "no error names a $kind"
done
[ "$transcripts $subtitles $failed $named $status" = "950 950 50 50 1" ]
