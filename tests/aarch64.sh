#!/usr/bin/env bash
# Usage: tests/aarch64.sh [OPTION]... [BIN]: builds hark for aarch64 on x86-64 and runs it under QEMU: the demonstration
# models write what the x86 tools in BIN (build/bin) write, and quick tests pass. Run again, it only does what is
# missing. It costs, in /var/tmp/hark-aarch64 (HARK_AARCH64_OUT):
#
#   always      a Debian 12 with a cross compiler and libraries for arm64: 2 GB, 8 minutes; a build of five tools
#               and of the tests of core, formats, audio and kernels; ten minutes and more under QEMU
#   --no-tests  no tests: only the tools are built and compared
#   --cuda      also libhark-cuda.so, by NVIDIA's compiler and libraries from PyPI: 650 MB fetched, 1 GB more, and
#               10 minutes of compiling. No GPU runs it. HARK_AARCH64_CMAKE has further arguments for CMake:
#               -DCMAKE_CUDA_ARCHITECTURES=90a-real
#
# Needs root, and Linux 6.7 or newer (tests/roots/emulated.sh). It changes nothing outside its folder except the
# package mmdebstrap. Not part of tests/run.sh. QEMU shows what is right, not what is fast.
set -euo pipefail
caller="$PWD"
cd "$(dirname "$0")/.."
tree="$PWD"
tests=yes cuda="" bin="build/bin"
while [ $# -gt 0 ]; do
    case "$1" in
        -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$tree/tests/aarch64.sh" && exit ;;
        --no-tests) tests="" ;;
        --cuda) cuda=yes ;;
        -*) echo "aarch64.sh: no option '$1'; try tests/aarch64.sh --help" >&2 && exit 2 ;;
        *) bin="$(cd "$caller" && realpath -- "$1")" ;;
    esac
    shift
done
bin="$(realpath -- "$bin")"
for tool in audio-decode mel vad gpt-generate; do
    [ -x "$bin/$tool" ] || { echo "aarch64.sh: $bin: has no $tool; build the tools first" >&2 && exit 2; }
done
. pipelines/packages.sh
. tests/roots/make.sh
out="${HARK_AARCH64_OUT:-/var/tmp/hark-aarch64}"
mkdir -p "$out"
out="$(realpath "$out")"
build="$out/build" jobs="${HARK_JOBS:-$(nproc)}"

# What is compiled against is arm64's; what runs is this machine's.
libraries=() programs=()
for package in $hark_packages libgtest-dev libbenchmark-dev; do
    case "$package" in
        nlohmann-json3-dev) programs+=("$package") ;;
        *-dev) libraries+=("$package:arm64") ;;
        *) programs+=("$package") ;;
    esac
done
make_root "$out/root" bookworm:amd64,arm64 minbase "${programs[@]}" "${libraries[@]}" crossbuild-essential-arm64 \
    qemu-user-static ccache git groff-base python3-pip unzip

emulated() { tests/roots/emulated.sh "$out/root/usr/bin/qemu-aarch64-static" "$@"; }
# inside COMMAND...: in that Debian, where programs for aarch64 run too.
inside() { emulated tests/roots/run.sh "$out/root" "$tree" "$out" -- env CCACHE_DIR="$out/ccache" "$@"; }

targets="audio-decode vad mel whisper-transcribe gpt-generate"
[ -z "$tests" ] || targets+=" core_tests formats_tests audio_tests kernels_tests"
options=(-DHARK_CUDA=OFF)
if [ -n "$cuda" ]; then
    inside "$tree/packages/cuda_aarch64.sh" "$out/cuda"
    targets+=" hark_cuda"
    options=(-DHARK_CUDA=ON "-DCMAKE_CUDA_COMPILER=$out/cuda/bin/nvcc")
fi
inside cmake -S "$tree" --preset aarch64 -B "$build" "${options[@]}" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DHARK_BUILD_TESTS="$([ -n "$tests" ] && echo ON || echo OFF)" ${HARK_AARCH64_CMAKE:-} > /dev/null
inside ninja -C "$build" -j "$jobs" $targets

work="$(mktemp -d -p "$out")"
trap 'rm -rf "$work"' EXIT
arm() { inside "$build/bin/$1" "${@:2}"; }

# same NAME INPUT TOOL ARGUMENT...: both write the same bytes.
same() {
    local name="$1" input="$2"
    shift 2
    "$bin/$1" "${@:2}" < "$input" > "$work/x86"
    arm "$@" < "$input" > "$work/arm"
    cmp "$work/x86" "$work/arm" || { echo "aarch64.sh: $name: $* differs" >&2 && exit 1; }
    [ -s "$work/x86" ]
    echo "same bytes: $name: $*"
}

[ "$(od -An -tx2 -j18 -N2 "$build/bin/mel")" = " 00b7" ]  # an ELF file's machine: AArch64
arm mel --version
# QEMU has no Landlock and no seccomp, which audio-decode says on stderr. Decoders of lossy formats differ in the last
# digits between processors, so mp3 is compared by its text.
for sample in answer.wav two_speakers.flac; do
    same "$sample" /dev/null audio-decode --sandbox off "$tree/samples/$sample"
done
"$bin/audio-decode" "$tree"/samples/{answer.wav,story.mp3} > "$work/audio"
same "two recordings" "$work/audio" vad
same "two recordings" "$work/audio" mel
echo "Once upon a time" > "$work/prompt"
same "a prompt" "$work/prompt" gpt-generate --model "$tree/models/gpt-demo" --threads 2 --max-tokens 40 --temperature 0
# All three tools on aarch64, with its decoder of mp3: the text that README.md shows, which is x86's. It takes minutes.
arm audio-decode --sandbox off "$tree/samples/story.mp3" > "$work/audio"
arm mel < "$work/audio" > "$work/mel"
arm whisper-transcribe --model "$tree/models/whisper-demo" --threads 2 < "$work/mel" > "$work/text"
awk '/^```text$/ { text = 1; next } /^```$/ { text = 0 } text' README.md | cmp - "$work/text"
echo "same text: story.mp3 through all three tools"

if [ -n "$cuda" ]; then
    said="$(arm whisper-transcribe --version)"
    grep '^devices: cpu, cuda$' <<< "$said"
fi
# Not core.sandbox: QEMU has neither Landlock nor seccomp. Of the kernels, the loops of this processor.
if [ -n "$tests" ]; then
    for tests in '^(core|formats|audio)[.]' '^kernels[.]cpu$' '^kernels[.]blocks$'; do
        inside ctest --test-dir "$build" -j "$jobs" -R "$tests" -E '^core[.]sandbox$' --output-on-failure \
            --no-tests=error
    done
fi
echo "aarch64.sh: all is well"
