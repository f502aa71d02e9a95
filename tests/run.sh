#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: quick ones of libraries and of tools under
# AddressSanitizer and UndefinedBehaviorSanitizer, with half a second of fuzzing for each reader;
# kernels and slow ones in a release build. CUDA code is compiled for one architecture. Needs neither a
# GPU nor the network once packages are there. Run again, it only does what is missing.
# Arguments go to ctest: tests/run.sh -R whisper; tests/run.sh -L quick
# More: tests/fuzz.sh (minutes of fuzzing), tests/cuda_build.sh (all architectures), tests/gpu_check.sh,
# tests/page.sh (a browser), tests/cloud.sh (a mock of a cloud), tests/cluster.sh (Slurm), tests/s3.sh, tests/packages.sh
# (packages in fresh systems), tests/reproducible.sh, tests/aarch64.sh (QEMU).
set -euo pipefail
cd "$(dirname "$0")/.."
. pipelines/packages.sh
install_packages $hark_packages $hark_test_packages
jobs="$(nproc)"

speed=()
if command -v ccache > /dev/null; then
    speed=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi

# Kernels that no GPU here runs are compiled, not optimised.
unoptimised=ON
[ ! -e /dev/nvidiactl ] || unoptimised=OFF

# pipelines/demo.sh leaves out tests, and CUDA if there is no GPU.
# The sanitizers' build has the quick tests of libraries and tools, the release build all others.
cmake --preset cpu -DHARK_BUILD_TESTS=ON -DHARK_MPI=ON -DHARK_CUDA=AUTO \
    -DCMAKE_CUDA_ARCHITECTURES=90a-real -DHARK_CUDA_UNOPTIMISED=$unoptimised \
    -DHARK_READER_TESTS=OFF "${speed[@]}"
cmake --build --preset cpu -j "$jobs"
cmake --preset cpu-asan -DHARK_BUILD_TESTS=ON -DHARK_MPI=ON -DHARK_SANITIZE_QUICK=ON \
    -DHARK_KERNELS_FROM="$PWD/build" "${speed[@]}"
cmake --build --preset cpu-asan -j "$jobs"

# The tests of both builds in one run, whose summary closes this one: no core waits for the last tests
# of a build. No test is in both. The slow ones compare numbers: the release build has them.
mkdir -p build/both
printf 'subdirs("%s")\n' "$PWD/build-asan" "$PWD/build" > build/both/CTestTestfile.cmake
# Two processes more than cores: tests wait, for a server, a lock, a disk or a process that is killed.
ctest --test-dir build/both -j "$((jobs + 2))" --output-on-failure --no-tests=error "$@"
