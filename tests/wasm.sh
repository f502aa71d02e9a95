#!/usr/bin/env bash
# Usage: tests/wasm.sh [BIN [SCREENSHOTS]]: builds mel, vad, whisper-transcribe and gpt-generate for WebAssembly,
# runs them under node, and compares what they write with the native tools in BIN (build/bin), byte by byte.
# Then it drops recordings on the page in Chromium; its pictures go to the folder SCREENSHOTS. Needs root: the
# emscripten is Debian 13's, in a chroot of 2.5 GB that is made once, in HARK_WASM_ROOT (/var/tmp/hark-wasm).
# Not part of tests/run.sh: the first run takes long.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
[ -n "${HARK_WASM_INSIDE:-}" ] || HARK_WASM_INSIDE=1 exec unshare --mount "$0" "$@"
bin="$(realpath -- "${1:-$here/../build/bin}")"
root="${HARK_WASM_ROOT:-/var/tmp/hark-wasm}"
for tool in audio-decode hark-trace mel vad whisper-transcribe gpt-generate; do
    [ -x "$bin/$tool" ] || {
        echo "wasm.sh: $bin: has no $tool; build the tools first" >&2
        exit 2
    }
done
. "$here/../pipelines/packages.sh"
if [ ! -e "$root/made" ]; then
    install_packages mmdebstrap
    rm -rf "$root"
    packages=emscripten,nodejs,git,cmake,ninja-build,pkgconf,dpkg-dev,libboost-dev,nlohmann-json3-dev
    mmdebstrap --quiet --variant=minbase --include="$packages,ca-certificates" trixie "$root"
    sed -n 's|^deb \(.*\) trixie main$|deb-src \1 trixie main\ndeb-src \1 bookworm main|p' \
        "$root/etc/apt/sources.list" > "$root/etc/apt/sources.list.d/source.list"
    chroot "$root" apt-get update --quiet=2
    mkdir -p "$root/src" "$root/build"
    touch "$root/made"
fi
mount --bind "$here/.." "$root/src"
mount -t proc proc "$root/proc"
inside() { chroot "$root" /bin/sh -c 'cd /src && exec "$@"' sh "$@"; }

inside wasm/libraries.sh /build/libraries
inside emcmake cmake --preset wasm -B /build/wasm -DHARK_WASM_LIBRARIES=/build/libraries > /dev/null
inside ninja -C /build/wasm -j2

work="$(mktemp -d -p "$root/tmp")"
seen="/tmp/$(basename "$work")"  # within the chroot
trap 'rm -rf "$work"' EXIT
cd "$here/.."
wasm() { inside node wasm/tool.mjs "/build/wasm/bin/$1.js" "${@:2}"; }

# same NAME INPUT TOOL ARGUMENT...: both write the same bytes.
same() {
    local name="$1" input="$2"
    shift 2
    "$bin/$1" "${@:2}" < "$input" > "$work/native"
    wasm "$@" < "$input" > "$work/wasm"
    cmp "$work/native" "$work/wasm" || {
        echo "wasm.sh: $name: $* differs" >&2
        exit 1
    }
    [ -s "$work/native" ]
    echo "same bytes: $name: $*"
}

# fails STATUS MESSAGE TOOL ARGUMENT...: an exception becomes an exit status and a message.
fails() {
    local status=0
    wasm "${@:3}" < /dev/null > /dev/null 2> "$work/errors" || status=$?
    if [ "$status" != "$1" ] || ! grep -q -- "$2" "$work/errors"; then
        echo "wasm.sh: ${*:3}: exit status $status and '$(cat "$work/errors")', expected $1 and '$2'" >&2
        exit 1
    fi
    echo "fails with $1: ${*:3}"
}

"$bin/audio-decode" samples/{answer,nacht,silence,noise}.wav samples/{story,jardin}.mp3 \
    samples/two_speakers.flac > "$work/audio"
same "seven recordings" "$work/audio" vad
"$bin/vad" < "$work/audio" > "$work/speech"
same "seven recordings" "$work/audio" mel
same "seven recordings" "$work/speech" mel
same answer.wav samples/answer.wav mel
tail -c +45 samples/answer.wav > "$work/pcm"
same "raw PCM" "$work/pcm" mel --raw s16le
"$bin/mel" < "$work/audio" > "$work/mel"
whisper=(whisper-transcribe --model models/whisper-demo --threads 1 --dtype f32)
same "seven recordings" "$work/mel" "${whisper[@]}"
"$bin/audio-decode" samples/story.mp3 | "$bin/mel" > "$work/story"
same story.mp3 "$work/story" "${whisper[@]}" --format srt --word-timestamps --max-line-width 20
same story.mp3 "$work/story" "${whisper[@]}" --format tsv --beam-size 3
gpt=(gpt-generate --model models/gpt-demo --threads 1 --dtype f32 --max-tokens 40)
printf '%s\n' "Once upon a time" "The old man" "" "In the morning the wind" > "$work/prompts"
same prompts "$work/prompts" "${gpt[@]}" --input-format lines --temperature 0
same "one prompt, sampled" "$work/prompts" "${gpt[@]}" --seed 7
same "an answer of a form" "$work/prompts" "${gpt[@]}" --regex '[a-z]+.[0-9]{3}'
same "a token less likely" "$work/prompts" "${gpt[@]}" --seed 3 --logit-bias 5=-1.5e1

# measured NAME INPUT TOOL ARGUMENT...: the stages of the profile are those that the native tool has on a pipe, and
# the metrics have the same names, labels and seconds of audio.
measured() {
    local name="$1" input="$2" tool="$3"
    shift 3
    cat -- "$input" | "$bin/$tool" "$@" --profile "$work/native.json" --metrics "$work/native.prom" |
        cat > "$work/native"
    wasm "$tool" "$@" --profile "$seen/$tool.json" --metrics "$seen/wasm.prom" < "$input" > "$work/wasm"
    cmp "$work/native" "$work/wasm"
    stages() { grep -o "\"name\":\"$tool[.][a-z.]*\"" "$1" | sort -u; }
    cmp <(stages "$work/native.json") <(stages "$work/$tool.json")
    metrics() { sed '/^hark_\(audio_seconds\|recordings\)_total/!s/ [^ ]*$//; /^#/d' "$1" | sort; }
    cmp <(metrics "$work/native.prom") <(metrics "$work/wasm.prom")
    grep -q '^hark_peak_memory_bytes{.*} [1-9]' "$work/wasm.prom"
    [ "$(stages "$work/$tool.json" | wc -l)" -gt 3 ]
    echo "measured: $name: $tool"
}
measured "seven recordings" "$work/audio" mel
measured "seven recordings" "$work/mel" "${whisper[@]}"
"$bin/hark-trace" summary "$work/mel.json" > "$work/summary"
grep -q '^bound by mel' "$work/summary"
if "$bin/hark-trace" merge "$work/mel.json" "$work/whisper-transcribe.json" > "$work/merged" 2> "$work/errors" ||
    ! grep -q 'their clocks differ' "$work/errors"; then
    echo "wasm.sh: hark-trace merge took the profiles of two programs, which have no common clock" >&2
    exit 1
fi
grep -q "^commit: $(git rev-parse --short=12 HEAD)$" <(wasm mel --version)

fails 2 "unknown option" mel --nonsense
fails 1 "no such file" whisper-transcribe --model ./missing
fails 1 "no data" whisper-transcribe --model models/whisper-demo

install_packages chromium chromium-driver python3
screenshots="${2:-$work/screenshots}"
mkdir -p "$screenshots"
for sample in answer.wav story.mp3; do
    "$bin/audio-decode" "samples/$sample" | "$bin/mel" | "$bin/${whisper[0]}" "${whisper[@]:1}" > "$work/$sample.txt"
done
export HARK_WASM_PAGE="$root/build/wasm/page" HARK_WASM_TEXTS="$work" HARK_WASM_SCREENSHOTS="$screenshots"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$here/page" python3 "$here/wasm/page_test.py" --verbose
