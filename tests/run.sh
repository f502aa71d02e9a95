#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: the tools and libraries in a release build,
# then readers and tools again and the fuzz targets under AddressSanitizer and
# UndefinedBehaviorSanitizer. Needs neither a GPU nor the network once packages are there.
# Run again, it only does what is missing. Arguments go to ctest: tests/run.sh -R whisper
set -euo pipefail
cd "$(dirname "$0")/.."
. pipelines/packages.sh
install_packages $hark_packages $hark_test_packages
jobs="$(nproc)"

# pipelines/demo.sh leaves out tests, and CUDA if there is no GPU.
cmake --preset cpu -DHARK_BUILD_TESTS=ON -DHARK_MPI=ON -DHARK_CUDA=AUTO
cmake --build --preset cpu -j "$jobs"
cmake --preset cpu-asan -DHARK_BUILD_TESTS=ON -DHARK_MPI=ON
cmake --build --preset cpu-asan -j "$jobs"

# The sanitizers first, without the longest comparisons of numbers, of which the short recordings
# stay. The summary that closes the run is then the release build's, and is only written if the
# sanitizers found nothing.
long='Golden/(Recording|Words)|Sweep.*speech10(0[2-9]|[1-6])|Batch|Draft|Independent|GptDemo|EveryContainer|Detector'
long="$long|ThreeHours|TranscribeScript|OfficialShape|Readme|tools\.Train\."
# AddressSanitizer reserves terabytes of address space, which these tests bound.
long="$long|AnEndlessLineIsRefused|ALineOfJsonHasABound"
ctest --test-dir build-asan -j "$jobs" --output-on-failure --no-tests=error -E "$long" "$@"
ctest --test-dir build -j "$jobs" --output-on-failure --no-tests=error "$@"
