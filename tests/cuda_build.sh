#!/usr/bin/env bash
# Compiles and links the CUDA code for every architecture that is given to others (preset cuda). Fails
# on any warning of a compiler and any note of ptxas. tests/run.sh compiles one of them, unoptimised.
set -euo pipefail
cd "$(dirname "$0")/.."
. pipelines/packages.sh
install_packages $hark_packages
cmake --preset cuda -DHARK_BUILD_TESTS=OFF
cmake --build --preset cuda -j "$(nproc)" --target hark_cuda --clean-first 2>&1 | tee build-cuda/messages
if grep -E 'warning|ptxas info' build-cuda/messages > build-cuda/warnings; then
    echo "cuda_build.sh: $(wc -l < build-cuda/warnings) lines of warnings, listed in build-cuda/warnings" >&2
    exit 1
fi
