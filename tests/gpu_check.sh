#!/bin/sh
# Packs what a bare GPU machine needs to run the kernels' tests and benchmarks: no compiler, no
# -dev packages there, only a driver, CUDA's cuBLAS and the C++ runtime.
#   tests/gpu_check.sh        builds the preset gpu-check into .carry/gpu-check.tar.xz
# docs/development.md says how it is run there.
set -eu
cd "$(dirname "$0")/.."
limit_mb=30
jobs=${JOBS:-$(nproc)}

cmake --preset gpu-check > /dev/null
# The programs that this checkout has: the tests that a GPU is used in, the tools and the benchmarks.
tests="audio_tests core_tests gpt_tests kernels_tests nn_tests whisper_tests op_bits"
targets=$(ninja -C build-gpu -t targets all | sed -n 's/^\([a-z0-9_-]*\): phony$/\1/p')
kept() { for name in "$@"; do if echo "$targets" | grep -qx -- "$name"; then echo "$name"; fi; done; }
tests=$(kept $tests)
programs=$(kept audio-decode bench bench-cuda-ops bench-ladder mel whisper-transcribe gpt-generate gpt-train)
ninja -C build-gpu -j "$jobs" hark_cuda $programs $tests

staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
mkdir -p "$staged/bin" "$staged/lib" "$staged/tests" "$staged/tests/golden" "$staged/bench"
for program in $programs; do cp "build-gpu/bin/$program" "$staged/bin/"; done
for test in $tests; do cp "build-gpu/tests/$test" "$staged/tests/"; done
cp build-gpu/lib/libhark-cuda.so "$staged/lib/"
if [ -f build-gpu/lib/libhark-nccl.so ]; then cp build-gpu/lib/libhark-nccl.so "$staged/lib/"; fi
cp bench/*.py bench/kernels/*.py "$staged/bench/"
cp tests/golden/*.json tests/golden/op_errors.py tests/golden/formula_weights.py "$staged/tests/golden/"
strip "$staged"/bin/* "$staged"/tests/*_tests "$staged"/tests/op_bits "$staged"/lib/*
# The distribution's libraries that such a machine lacks: what the tests and bench load, and what
# those load, except the C and C++ runtimes, which every machine with a compiler's runtime has.
ldd "$staged"/bin/* "$staged"/tests/*_tests "$staged"/tests/op_bits "$staged"/lib/* |
    sed -n 's/^\t\(lib\(boost_program_options\|crypto\|dnnl\|gomp\|OpenCL\|pcre2\)[^ ]*\) => \([^ ]*\) .*/\3/p' | sort -u |
    while read -r library; do cp -L "$library" "$staged/lib/"; done

mkdir -p .carry
# One dictionary over all files: the programs share much of their code.
tar -C "$staged" -cf - . | xz --lzma2=preset=6,dict=192MiB > .carry/gpu-check.tar.xz.new
mv .carry/gpu-check.tar.xz.new .carry/gpu-check.tar.xz
size=$(stat -c %s .carry/gpu-check.tar.xz)
echo ".carry/gpu-check.tar.xz: $((size / 1000000)) MB, $(tar tf .carry/gpu-check.tar.xz | grep -c '[^/]$') files"
if [ "$size" -gt $((limit_mb * 1000000)) ]; then
    echo "gpu_check: expected at most $limit_mb MB" >&2
    exit 1
fi
