#!/usr/bin/env bash
# cuda_aarch64.sh DIR: fetches from PyPI what compiles CUDA code for aarch64 on x86-64, into DIR: NVIDIA's compiler for
# x86-64, and CUDA's headers and libraries for aarch64. 650 MB are fetched, 1.1 GB are kept. What exists already is
# kept. Needs python3 with pip, and unzip. CMake takes it by -DCMAKE_CUDA_COMPILER=DIR/bin/nvcc.
set -euo pipefail
mkdir -p "$1"
dir="$(realpath "$1")"
wanted="$(cksum < "$0")"
[ "$(cat "$dir/made" 2> /dev/null)" != "$wanted" ] || exit 0
if [ ! -e "$dir/cuda_aarch64" ] && [ ! -e "$dir/made" ] && [ -n "$(ls -A "$dir")" ]; then
    echo "cuda_aarch64.sh: $dir: is not empty, and not of this script" >&2
    exit 1
fi
: > "$dir/cuda_aarch64"
work="$(mktemp -d -p "$dir")"
trap 'rm -rf "$work"' EXIT

# fetch PROCESSOR PACKAGE...: of CUDA 13.0.
fetch() {
    local processor="$1"
    shift
    python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$work/$processor" \
        --platform "manylinux2014_$processor" --platform "manylinux_2_27_$processor" "${@/%/==13.0.*}"
}
fetch x86_64 nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt
fetch aarch64 nvidia-cuda-runtime nvidia-cuda-cccl nvidia-nvtx nvidia-cublas
for wheel in "$work"/*/*.whl; do unzip -qo "$wheel" -d "$work/all"; done
cp -a "$work"/all/*.dist-info "$work/all/nvidia/cu13"
rm -rf "$dir"/{bin,include,lib,nvvm,targets,*.dist-info}
mv "$work"/all/nvidia/cu13/* "$dir"
chmod +x "$dir"/bin/* "$dir"/nvvm/bin/*
# The names that a linker looks for, and the folder of a target that nvcc and CMake look into.
for library in cublasLt cudart; do ln -s "lib$library.so.13" "$dir/lib/lib$library.so"; done
mkdir -p "$dir/targets/aarch64-linux"
ln -s ../../include ../../lib "$dir/targets/aarch64-linux"
echo "$wanted" > "$dir/made"
