#!/usr/bin/env bash
# The memory of gpt-generate over many prompts in one run, an answer of one token each: it never
# has 4 MiB more than after the first tenth, when its cache is full. Not part of tests/run.sh, since
# it takes minutes.
#
#   usage: tests/reliability/many_prompts.sh [PROMPTS [GPT-GENERATE OPTION]...]
#                                            (100000 prompts of the demo model unless told)
#
# Prints resident memory in KiB at each tenth of the answers.
set -euo pipefail
prompts="${1:-100000}"
[ $# -eq 0 ] || shift
[[ "$prompts" =~ ^[0-9]+$ && "$prompts" -ge 10000 ]] || {
    echo "usage: $0 [PROMPTS [GPT-GENERATE OPTION]...], at least 10000 prompts" >&2
    exit 2
}
[ $# -gt 0 ] || set -- --model demo
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkfifo "$work/answers"
# Prompts differ and are longer than a block of the cache, which keeps their beginnings.
more='who lived in the old castle by the sea with their three daughters, two dogs and one white horse'
seq "$prompts" | sed "s/.*/& queens $more, and said to the king that/" |
    gpt-generate "$@" --input-format lines --max-tokens 1 --temperature 0 > "$work/answers" &
exec 3< "$work/answers"
pid="$!"
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; }

early='' most=0 count=0
while IFS= read -r _ <&3; do
    count=$((count + 1))
    # The last answers may be read when the tool has ended.
    if [ $((count % (prompts / 10))) -eq 0 ] && now="$(resident 2> /dev/null)" && [ -n "$now" ]; then
        echo "$count answers: $now KiB"
        [ -n "$early" ] || early="$now"
        [ "$now" -le "$most" ] || most="$now"
    fi
done
wait "$pid"
[ "$count" -eq "$prompts" ] || { echo "expected $prompts answers, found $count" >&2; exit 1; }
if [ $((most - early)) -gt 4096 ]; then
    echo "memory grew from $early to $most KiB" >&2
    exit 1
fi
echo "$count answers, memory flat: $early KiB after a tenth, then at most $most"
