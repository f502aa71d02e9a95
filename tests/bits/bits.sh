#!/usr/bin/env bash
# bits.sh BUILD > FILE: the SHA-256 of what the demo models and the operations give on this machine,
# in one line each. Two builds that shall have equal bits: compare their files with diff.
#
#   whisper-*   transcripts with scores, greedy, with beams and with word times, in each type
#   gpt-*       200 tokens with log probabilities, in each type but bf16
#   train-*     the weights after ten steps
#   the rest    op_bits: every operation, for each kind of CPU kernels and, if there is one, a GPU
#
# Bits depend on the processor, so the two files must come from one machine. DEVICE=cuda runs the
# models on a GPU.
set -euo pipefail
build="$(realpath -- "${1:?usage: tests/bits/bits.sh BUILD}")"
cd "$(dirname "$0")/../.."
PATH="$build/bin:$PATH"
device="${DEVICE:-cpu}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME="$work/no-config"
here=(--device "$device" --threads 2)
[ "$device" = cpu ] || here=(--device "$device")

audio-decode samples/*.mp3 samples/*.wav | mel > "$work/mel"
whisper() { # NAME MODEL ARGUMENT...
    whisper-transcribe --model "$2" "${here[@]}" --quiet --format jsonl "${@:3}" \
        < "$work/mel" > "$work/whisper-$1"
}
for type in f32 f16 int8; do whisper "$type" demo --dtype "$type"; done
whisper beams demo --dtype f32 --beam-size 5 --word-timestamps
whisper independent demo --dtype f32 --windows independent --batch-size 8
for type in q8_0 q5_1 q4_0; do
    hark-model convert whisper-demo "$work/$type.bin" --type "$type" --quiet
    whisper "$type" "$work/$type.bin"
    rm "$work/$type.bin"
done
for type in f32 f16 int8; do
    printf 'In the morning' | gpt-generate --model demo "${here[@]}" --quiet --dtype "$type" --seed 7 \
        --max-tokens 200 --format jsonl --logprobs 0 |
        sed -E 's/"(seconds_to_first_token|tokens_per_second)":[^,}]*,?//g' > "$work/gpt-$type"
done
gpt-train --train synthetic --layers 2 --width 64 --heads 2 --sequence-length 64 --batch-size 4 \
    --steps 10 --seed 3 "${here[@]}" --output-dir "$work/run" --quiet > /dev/null
cp -L "$work/run/model.safetensors" "$work/train-weights"
rm -rf "$work/run" "$work/mel"
"$build/tests/op_bits" "$work"
cd "$work"
sha256sum -- * | awk '{ print $2, $1 }'
