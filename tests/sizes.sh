#!/usr/bin/env bash
# Prints what is longer than docs/style.md allows, as FILE:LINE: text; exit 1 if anything is: a source file of more than
# 400 lines, a main of more than 100, a function of more than 80 (a kernel: 150). Functions are found by clang-format's
# layout: from a line without indentation to the next "}" in the first column.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find apps bench libs tests wasm -type f -regex '.*\.\(cc\|cu\|cuh\|h\|py\|js\)' ! -path '*/corpus/*')
awk '
    function limit(number, most, what) {
        if (number > most) { print FILENAME ":" FNR ": " what " of " number " lines, at most " most; bad = 1 }
    }
    FNR == 1 { start = 0; is_kernel = 0; is_main = FILENAME ~ /^apps\// }
    { if (FNR > 400 && !told[FILENAME]++) limit(FNR, 400, "a file")
      if (is_main && FNR > 100 && !main[FILENAME]++) limit(FNR, 100, "a main") }
    FILENAME !~ /\.(cc|cu|cuh|h)$/ { next }
    /^[^ \t}#\/]/ && !/^(namespace|using|extern "C" \{)/ && !start { start = FNR; is_kernel = 0 }
    start && /__global__/ { is_kernel = 1 }
    /^}/ || (start && /^[^ \t].*;$/) || /^$/ && start == FNR - 1 {
        if (/^}$/ && start) limit(FNR - start + 1, is_kernel ? 150 : 80, is_kernel ? "a kernel" : "a function")
        start = 0
    }
    END { exit bad }' "${files[@]}"
