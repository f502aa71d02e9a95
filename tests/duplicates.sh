#!/usr/bin/env bash
# Prints each place whose next 12 lines are those of another place, as FILE:LINE: the same 12 lines as FILE:LINE; exit 1
# if there is one. Includes, comments that end a namespace, and lines of less than three letters or digits do not count.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find apps bench libs pipelines tests -type f \
    -regex '.*\.\(cc\|cu\|cuh\|h\|py\|js\|sh\)' ! -path '*/corpus/*' | sort)
awk '
    FNR == 1 { lines = 0; after = 0 }
    { gsub(/[ \t]+/, " "); sub(/^ /, "") }
    /^#include/ || /^using / || /^(} \/\/ )?namespace/ { next }
    { text = $0; if (gsub(/[A-Za-z0-9]/, "", text) < 3) next }
    {
        line[++lines] = $0; number[lines] = FNR
        if (lines < 12) next
        window = ""
        for (i = lines - 11; i <= lines; ++i) window = window "\n" line[i]
        here = FILENAME ":" number[lines - 11]
        if (!(window in place)) { place[window] = here; after = 0 }
        else if (!after) { print here ": the same 12 lines as " place[window]; bad = 1; after = 1 }
    }
    END { exit bad }' "${files[@]}"
