#!/usr/bin/env bash
# Compiles and links the CUDA code for every architecture that is given to others (preset cuda).
# tests/run.sh compiles one of them.
set -euo pipefail
cd "$(dirname "$0")/.."
. pipelines/packages.sh
install_packages $hark_packages
cmake --preset cuda -DHARK_BUILD_TESTS=OFF
cmake --build --preset cuda -j "$(nproc)" --target hark_cuda
