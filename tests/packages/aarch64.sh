#!/usr/bin/env bash
# aarch64.sh TREE OUT: for tests/aarch64.sh, in a system with a cross compiler: builds, tests, makes the tar file.
set -euo pipefail
tree="$1" out="$2"
cd "$tree"
git config --global --add safe.directory "$tree"
SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)"
export SOURCE_DATE_EPOCH CCACHE_BASEDIR=/
options=(-DCMAKE_TOOLCHAIN_FILE="$tree/cmake/aarch64.cmake" -DHARK_CUDA=OFF -DHARK_MPI=OFF
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake --preset cpu -B "$out/build" "${options[@]}" -DHARK_PACKAGE=ON -DHARK_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr
cmake --build "$out/build" -j "$HARK_JOBS"
rm -f "$out"/*.tar.gz
PATH="/usr/lib/ccache:$PATH" packages/ffmpeg.sh "$out/build/ffmpeg" --enable-cross-compile --target-os=linux \
    --arch=aarch64 --cross-prefix=aarch64-linux-gnu-
packages/tarball.sh "$out/build" "$out/build/ffmpeg" "$out"

# The tests of what depends on the processor: kernels, layers, speech; and the tools.
cmake --preset cpu -B "$out/tests" "${options[@]}" -DHARK_BUILD_TESTS=ON -DHARK_READER_TESTS=OFF
cmake --build "$out/tests" -j "$HARK_JOBS" --target kernels_tests nn_tests
ctest --test-dir "$out/tests" --output-on-failure --no-tests=error -L quick -R '^(kernels|nn)\.' -j "$HARK_JOBS"
