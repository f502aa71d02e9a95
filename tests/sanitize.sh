#!/usr/bin/env bash
# All tests but those of the GPU under AddressSanitizer and UndefinedBehaviorSanitizer, kernels too:
# hours on two cores. tests/run.sh has readers and tools, whose kernels are not instrumented.
# Arguments go to ctest.
set -euo pipefail
cd "$(dirname "$0")/.."
. pipelines/packages.sh
install_packages $hark_packages $hark_test_packages
cmake --preset cpu-asan -B build-sanitize -DHARK_SANITIZE_KERNELS=ON -DHARK_UNITY=OFF -DHARK_BUILD_TESTS=ON -DHARK_MPI=ON
cmake --build build-sanitize -j "$(nproc)"
export HARK_ALL_RECORDINGS=1
ctest --test-dir build-sanitize -j "$(nproc)" --output-on-failure --no-tests=error -LE gpu "$@"
