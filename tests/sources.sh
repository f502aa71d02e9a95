#!/usr/bin/env bash
# Checks the pages of docs/ and the READMEs, and prints FILE:LINE: what is wrong; exit 1 if anything is.
# docs/style.md has bad examples, docs/cli.md is made from the options.
#   - A table with measured figures has a source: [1] in the table or in the paragraph directly above it.
#   - Each [n] is an entry "[n] ..." of the page's section "## Sources", and each entry is cited.
#   - A link to a file of the tree leads to one. A source file that is named is there.
#   - A program of the tree that a page runs is there, and so is a file of libs/ that a comment of a source names.
#   - A line has at most 120 columns, except in tables, code and Sources (URLs and commands are not cut).
# Arguments are pages to check instead of all: tests/sources.sh docs/performance.md
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -gt 0 ]; then
    pages=("$@")
else
    mapfile -t pages < <(find README.md {samples,models}/README.md docs -name '*.md' ! -path docs/style.md ! -path docs/cli.md | sort)
fi

tree="$(find apps bench libs tests wasm -type f)"

failed=0
for page in "${pages[@]}"; do
    awk -v page="$page" '
        function report(line, text) { print page ":" line ": " text; failed = 1 }
        function cite(text) { while (match(text, /\[[0-9]+\]/)) { cited[substr(text, RSTART + 1, RLENGTH - 2)] = FNR
                                                              text = substr(text, RSTART + RLENGTH) } }
        function end_table() {
            if (table && figures && (above table) !~ /\[[0-9]+\]/) report(first, "a table of figures without a source [n]")
            table = ""; figures = 0; above = ""
        }
        BEGIN {
            unit = "(ms|us|s|min|MB|GB|TB|%|tokens\\/s|[GT]FLOP\\/s|[MGT]B\\/s)"
            units = "(milli|micro)?seconds|tokens/s|FLOP/s|B/s|[MG]B([^a-z]|$)|(^|[ ,])(ms|us)([^a-z]|$)|%|real time|fraction"
        }
        /^```/ { code = !code; end_table(); next }
        code { next }
        /^## Sources$/ { end_table(); sources = 1; next }
        sources {
            if (match($0, /^\[[0-9]+\]/)) { n = substr($0, 2, RLENGTH - 2); if (n in source) report(FNR, "[" n "] twice"); source[n] = FNR }
            next
        }
        { text = $0; gsub(/[^\x01-\x7f][\x80-\xbf]*/, "x", text) }
        !/^\|/ && !/^    / && length(text) > 120 { report(FNR, "more than 120 columns: " length(text)) }
        /^\|/ {
            cite($0)
            if (!table) { first = FNR; rows = 0; headed = tolower(above " " $0) ~ units }
            table = table "\n" $0
            if (++rows > 2) {
                n = split($0, cell, "|")
                for (i = 3; i < n; ++i) {
                    gsub(/^[ *]+|[ *]+$/, "", cell[i])
                    if (cell[i] ~ ("(^|[ (])[0-9][0-9.,]* ?" unit "([^a-z0-9_]|$)")) figures = 1
                    if (headed && cell[i] ~ /^[0-9][0-9.,]*( (to|and) [0-9.,]+|, [0-9.,]+)*$/) figures = 1
                }
            }
            next
        }
        table { end_table() }
        /^$/ { blank = 1; next }
        { if (blank) above = ""; blank = 0; above = above " " $0; cite($0) }
        END {
            end_table()
            for (n in cited) if (!(n in source)) report(cited[n], "[" n "] is not in Sources")
            for (n in source) if (!(n in cited)) report(source[n], "[" n "] is not cited")
            exit failed
        }' "$page" || failed=1
    links="$(grep -oE '\]\([^)# ]+' "$page" | cut -c3- | grep -v '^http' || [ $? -eq 1 ])"
    for link in $links; do
        [ -e "$(dirname "$page")/$link" ] || { echo "$page: a link to $link, which is not there"; failed=1; }
    done
    names="$(sed '/^## Sources$/,$d' "$page" | grep -oE '`[a-z][a-z0-9_/.-]*\.(cc|cu|cuh|h|def)`' | tr -d '`' | sort -u || true)"
    for name in $names; do
        grep -qE "(^|/)$name\$" <<< "$tree" || { echo "$page: no source file is named $name"; failed=1; }
    done
    for name in $(grep -oE '(bash|python3?) (bench|docs|pipelines|tests)/[a-z0-9_/-]+\.(sh|py)' "$page" | cut -d ' ' -f 2); do
        [ -e "$name" ] || { echo "$page: runs $name, which is not there"; failed=1; }
    done
done

rooms="$(cd libs && echo */ | sed 's#/ *#|#g; s#|$##')"
while IFS=: read -r file line comment; do
    for name in $(grep -oE "\b($rooms)/[a-z0-9_/]+\.(cc|cu|cuh|h|def)\b" <<< "$comment"); do
        grep -qE "(^|/)$name\$" <<< "$tree" || { echo "$file:$line: no source file is named $name"; failed=1; }
    done
done < <(grep -rnoE "(//|#) .*\b($rooms)/[a-z0-9_/]+\.(cc|cu|cuh|h|def)\b.*" apps bench libs tests wasm)
exit $failed
