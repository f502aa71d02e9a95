#!/usr/bin/env bash
# Usage: tests/fuzz.sh [SECONDS [NAME...]]: fuzzes every reader of bytes from outside, or those named,
# for SECONDS each (600), one per processor at once. tests/run.sh runs each for a few seconds.
# What a crash needs is kept as build-asan/fuzz/NAME/crash.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-600}"
[[ "$seconds" =~ ^[1-9][0-9]*$ ]] || {
    echo "fuzz.sh: SECONDS: expected a number (got '$seconds')" >&2
    exit 2
}
shift || true
[ $# -gt 0 ] || set -- $(basename -s .cc -a tests/fuzz/fuzz_*.cc | sed 's/^fuzz_//')
cmake --preset cpu-asan -DHARK_BUILD_TESTS=ON -DHARK_SANITIZE_QUICK=OFF > /dev/null
cmake --build --preset cpu-asan -j "$(nproc)" --target fuzz_readers
printf '%s\n' "$@" | SECONDS_EACH="$seconds" xargs -P "$(nproc)" -I NAME sh -c '
    corpus=tests/fuzz/corpus/NAME
    [ -d "$corpus" ] || corpus=
    build-asan/tests/fuzz_readers NAME --seconds "$SECONDS_EACH" --crash build-asan/fuzz/NAME/crash $corpus 2>&1 |
        sed "s/^/NAME: /"
    ! [ -e build-asan/fuzz/NAME/crash ]'
