#!/usr/bin/env bash
# Prints every line with a banned word of tests/words.txt as FILE:LINE: text: what to write instead; exit 1 if there is one.
# The rules are in docs/style.md. Arguments are files to check instead of the whole tree: tests/words.sh README.md
set -euo pipefail
cd "$(dirname "$0")/.."

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

if [ $# -gt 0 ]; then
    files=("$@")
else
    # Texts that tests read are not ours: golden files, templates, sentences.
    mapfile -t files < <({
        find apps libs docs pipelines presets cmake README.md CMakeLists.txt {samples,models}/README.md \
            -type f ! -name '*.png' ! -path docs/style.md
        find .ci bench packages tests wasm -type f ! -path tests/words.sh ! -path tests/accuracy/sentences.py \
            ! -path 'tests/golden/*/*' ! -path '*/corpus/*' \
            \( -regex '.*\.\(cc\|cu\|cuh\|h\|py\|sh\|js\|css\|html\|md\|cmake\)' -o -name CMakeLists.txt -o -path .ci/run \)
    } | sort)
fi

# Two files with a line for each line of the tree: its place, and the text that is checked.
awk -v places="$work/places" -v texts="$work/texts" \
    '{ print > texts; print FILENAME ":" FNR > places }' "${files[@]}"

# words.txt: a regular expression, a tab, what to write instead, and maybe a tab and an expression that a line may have.
failed=0
while IFS=$'\t' read -r banned instead allowed; do
    case "$banned" in '' | '#'*) continue ;; esac
    hits="$(grep -inE "$banned" "$work/texts" || [ $? -eq 1 ])"
    if [ -n "$allowed" ]; then hits="$(grep -viE "$allowed" <<<"$hits" || [ $? -eq 1 ])"; fi
    [ -n "$hits" ] || continue
    failed=1
    awk -v instead="$instead" 'NR == FNR { place[FNR] = $0; next }
        { n = $0; sub(/:.*/, "", n); sub(/^[0-9]+:[ \t]*/, ""); print place[n] ": " $0 ": write " instead }' \
        "$work/places" - <<<"$hits"
done <tests/words.txt
exit $failed
