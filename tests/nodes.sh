#!/usr/bin/env bash
# Usage: tests/nodes.sh [BIN]: gpt-train on two "machines", network namespaces that a cable joins, on the
# CPU, by --rendezvous. Stories: an address and a token; a shared file; a rank that is killed; a cable that
# is pulled; each run continues and ends at the bits of one that nothing disturbed. Then ranks that are late,
# wrong, or have another token. BIN has the tools (build/bin). Needs root and iproute2. Not part of
# tests/run.sh: it takes six minutes, five of them until both ranks notice the pulled cable.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
bin="$(realpath -- "${1:-$here/../build/bin}")"
[ -x "$bin/gpt-train" ] && [ -x "$bin/gpt-tokenize" ] || {
    echo "nodes.sh: $bin: has no gpt-train and gpt-tokenize; build the tools first" >&2
    exit 2
}
work="$(mktemp -d)"
one="hark-one-$$" two="hark-two-$$"
remove() {
    ip netns del "$one" 2> /dev/null || true
    ip netns del "$two" 2> /dev/null || true
    rm -rf "$work"
}
trap remove EXIT
ip netns add "$one"
ip netns add "$two"
ip -n "$one" link add cable type veth peer name cable netns "$two"
for node in "$one 10.77.0.1" "$two 10.77.0.2"; do
    read -r name address <<< "$node"
    ip -n "$name" addr add "$address/24" dev cable
    ip -n "$name" link set lo up
    ip -n "$name" link set cable up
done

cd "$work"
export PATH="$bin:$PATH"
for ((i = 0; i < 2000; i++)); do echo "Line $((i * i % 997)), and the king said no."; done > text
gpt-tokenize --train-tokenizer --vocab-size 256 --output-dir tok text
gpt-tokenize --tokenizer tok text > train.bin
HARK_RENDEZVOUS_TOKEN="$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')"
export HARK_RENDEZVOUS_TOKEN

fail() {
    echo "nodes.sh: $*" >&2
    tail -n 5 ./*.err >&2
    exit 1
}

# start NODE RANK OUT OPTION...: sets `started`. Two ranks (`ranks`) take 1,000 steps.
ranks=2
start() {
    local node="$1" rank="$2" out="$3"
    shift 3
    ip netns exec "$node" gpt-train --train train.bin --tokenizer tok --layers 2 --width 32 --heads 2 \
        --sequence-length 32 --batch-size 4 --steps 1000 --save-every 50 --threads 1 --device cpu \
        --output-dir "$out" --rank "$rank" --ranks "$ranks" "$@" > "$out.$rank.out" 2> "$out.$rank.err" &
    started=$!
}

# both OUT OPTION...: starts a rank on each machine; sets `first` and `second`.
both() {
    local out="$1"
    shift
    start "$one" 0 "$out" "$@"
    first=$started
    start "$two" 1 "$out" "$@"
    second=$started
}
finish() {
    wait "$first" || fail "rank 0 failed"
    wait "$second" || fail "rank 1 failed"
}
until_step() {
    until [ -e "$1/step-$2" ]; do
        kill -0 "$first" 2> /dev/null || fail "rank 0 ended before step $2"
        sleep 0.05
    done
}
expect_same() {
    local file
    for file in model optimizer; do
        cmp "whole/step-00001000/$file.safetensors" "$1/step-00001000/$file.safetensors" ||
            fail "$2: other bits than the undisturbed run's"
    done
    echo "ok: $2 (after $SECONDS s)"
}
# expect_error PROCESS FILE TEXT
expect_error() {
    ! wait "$1" || fail "expected an error: $3"
    grep -qF -- "$3" "$2" || fail "expected '$3' in $2"
}

tcp=(--rendezvous tcp://10.77.0.1:4242)
both whole "${tcp[@]}"
finish
echo "ok: two machines by an address"

both file --rendezvous "$work/meeting"
finish
expect_same file "two machines by a shared file"

both killed "${tcp[@]}"
until_step killed 00000100
kill -KILL "$second"
{ wait "$second" || true; } 2> /dev/null
expect_error "$first" killed.0.err "rank 0: rank 1 has ended, and the run cannot continue without it"
both killed "${tcp[@]}"
finish
expect_same killed "a rank that was killed, and both started again"

both pulled "${tcp[@]}"
until_step pulled 00000100
ip -n "$two" link set cable down
expect_error "$first" pulled.0.err "link to rank 1: "
expect_error "$second" pulled.1.err "link to rank 0: "
ip -n "$two" link set cable up
both pulled "${tcp[@]}"
finish
expect_same pulled "a cable that was pulled, and both started again"

start "$one" 0 late "${tcp[@]}" --rendezvous-timeout 2
expect_error "$started" late.0.err "rank 1 of 2 did not connect within 2 s"
start "$two" 1 late "${tcp[@]}" --rendezvous-timeout 2
expect_error "$started" late.1.err "rank 0 was not found within 2 s: 10.77.0.1:4242: Connection refused"
echo "ok: a late rank is named"

start "$one" 0 wrong "${tcp[@]}"
first=$started
ranks=3
start "$two" 1 wrong "${tcp[@]}"
ranks=2
expect_error "$first" wrong.0.err "rank 1 was started for 3 ranks, rank 0 for 2"
expect_error "$started" wrong.1.err "rank 1 was started for 3 ranks, rank 0 for 2"
HARK_RENDEZVOUS_TOKEN=another-token-of-no-run start "$one" 0 token "${tcp[@]}" --rendezvous-timeout 5
first=$started
start "$two" 1 token "${tcp[@]}"
expect_error "$started" token.1.err "rank 0 has another token"
expect_error "$first" token.0.err "a process at 10.77.0.2 was refused: the token is another one"
echo "ok: wrong ranks are named"
echo "all stories passed"
