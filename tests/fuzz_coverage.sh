#!/usr/bin/env bash
# Usage: tests/fuzz_coverage.sh [SECONDS]: runs each fuzz target for SECONDS (30) in a build that counts
# lines, into build-coverage/, and prints for each reader of outside bytes how many lines it has and
# the share of them that ran.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-30}"
jobs="$(nproc)"
build="$PWD/build-coverage"
targets=$(basename -s .cc -a tests/fuzz/fuzz_*.cc)
cmake --preset cpu-asan -B "$build" -DHARK_BUILD_TESTS=ON -DHARK_SANITIZE_QUICK=ON \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O0 -g1 -DNDEBUG --coverage" > /dev/null
cmake --build "$build" -j "$jobs" --target $targets > /dev/null
find "$build" -name '*.gcda' -delete
for target in $targets; do
    corpus="tests/fuzz/corpus/${target#fuzz_}"
    [ -d "$corpus" ] || corpus=
    "$build/tests/$target" --seconds "$seconds" --crash "$build/$target.crash" $corpus > /dev/null
done
# Sources of several units, headers and what no fuzz target reads are left out.
cd "$build"
find . -name '*.gcda' -print0 | xargs -0 gcov -n 2> /dev/null | awk -v root="${build%/*}/" '
    /^File / { file = substr($0, 7, length($0) - 7); sub(root, "", file) }
    /^Lines executed/ && file ~ /^libs\/.*\.cc$/ {
        split($0, part, /[:% ]/)
        if (part[3] > 0) print file "\t" part[6] "\t" part[3]
        file = ""
    }' | sort -u
