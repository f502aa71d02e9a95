#!/usr/bin/env bash
# Usage: pipelines/demo.sh [RECORDING]
# Installs packages, builds the tools of the pipe into build/bin, and transcribes a recording.
#
#   RECORDING -> audio-decode -> mel -> whisper-transcribe -> text -> gpt-generate -> continuation
#
# Run again, it only does what is missing. The other tools: cmake --build build. Without an NVIDIA GPU it builds for the CPU alone, with
# one for that GPU alone. HARK_CUDA=ON builds for every GPU that hark supports, if nvcc is there;
# HARK_CUDA=OFF for none.
#
# Options:
#   -h, --help   print this and exit
#
# Examples:
#   pipelines/demo.sh
#   pipelines/demo.sh talk.mp3
#   HARK_CUDA=ON pipelines/demo.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
help_if_asked "$@"
[[ $# -le 1 && "${1:-}" != -* ]] || {
    echo "demo.sh: expected at most one recording, got '$*'; try demo.sh --help" >&2
    exit 2
}
[ $# -eq 0 ] || recording="$(realpath -- "$1")"
cd "$(dirname "$0")/.."
. pipelines/packages.sh
recording="${recording:-samples/story.mp3}"
[ -r "$recording" ] || { echo "demo.sh: $recording: cannot read this recording" >&2; exit 1; }

# cuda_options: what CMake is told about CUDA, a word per line. One sentence on stderr says why.
cuda_options() {
    local nvcc capability
    nvcc="$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc)" || true
    capability="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
        head -n 1)" || true
    if [ -n "${HARK_CUDA:-}" ]; then
        printf '%s\n' "-DHARK_CUDA=$HARK_CUDA" ${nvcc:+"-DCMAKE_CUDA_COMPILER=$nvcc"}
    elif ! [[ "$capability" =~ ^([89]|[1-9][0-9])\.[0-9]$ ]]; then
        echo "demo.sh: building for the CPU: no NVIDIA GPU of compute capability 8.0 or newer" \
            "found; HARK_CUDA=ON builds for GPUs too" >&2
        echo "-DHARK_CUDA=OFF"
    elif [ -z "$nvcc" ]; then
        echo "demo.sh: building for the CPU: no nvcc found; install CUDA 12.4 or newer" >&2
        echo "-DHARK_CUDA=OFF"
    else
        echo "demo.sh: building for the CPU and a GPU of compute capability $capability" >&2
        printf '%s\n' -DHARK_CUDA=AUTO "-DCMAKE_CUDA_ARCHITECTURES=$(architecture "$capability")"
    fi
}

# architecture CAPABILITY: the code that a GPU runs. One newer than Hopper compiles it from PTX.
architecture() {
    case "$1" in
        8.*) echo "${1/./}-real" ;;
        9.0) echo 90a-real ;;
        *) echo 80-virtual ;;
    esac
}

install_packages $hark_packages
if [ ! -f build/build.ninja ]; then
    mapfile -t cuda < <(cuda_options)
    cmake --preset cpu -DHARK_BUILD_TESTS=OFF "${cuda[@]}" >&2
fi
cmake --build build --target pipe >&2
PATH="$PWD/build/bin:$PATH"

echo "# $recording"
audio-decode "$recording" | mel | whisper-transcribe --model demo | tee build/demo-transcript.txt
echo
echo "# continued by gpt-generate:"
# The transcript's end: the model has a context of 512 tokens.
tr '\n' ' ' < build/demo-transcript.txt | tail -c 1000 | gpt-generate --model demo --max-tokens 60 --seed 1
echo
