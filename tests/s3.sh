#!/usr/bin/env bash
# Usage: tests/s3.sh [BIN]: hark worker with recordings in S3: a server of S3's protocol on this machine
# (moto, from PyPI) and Debian's rclone. Stories: s3:// addresses, an rclone remote, a signed URL and an
# object that is not there; a store that does not answer, and then does; workers that are killed;
# results that go to the store and are merged by another machine; keys that do not allow to list a
# bucket. BIN has the tools (build/bin). Not part of tests/run.sh: it needs PyPI.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
tree="$(dirname "$here")"
bin="$(realpath -- "${1:-$tree/build/bin}")"
[ -x "$bin/whisper-transcribe" ] || { echo "s3.sh: $bin: has no tools; build them first" >&2 && exit 2; }
. "$tree/pipelines/packages.sh"
install_packages rclone curl jq python3-venv
work="$(mktemp -d)"
trap 'kill "$server" 2> /dev/null; rm -rf "$work"' EXIT
server=""
export PATH="$bin:$PATH" HARK_LANGUAGE=en
cd "$work"

fail() {
    echo "s3.sh: $*" >&2
    tail -n 20 log server.log >&2 2> /dev/null
    exit 1
}

python3 -m venv python
python/bin/pip install --quiet 'moto[server]==5.2.5'
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
python/bin/moto_server -H 127.0.0.1 -p "$port" > server.log 2>&1 &
server=$!
unset AWS_CA_BUNDLE AWS_PROFILE AWS_SESSION_TOKEN # rclone 1.60 refuses a bundle of certificates
export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret AWS_REGION=us-east-1
export RCLONE_CONFIG="$work/rclone.conf" RCLONE_S3_PROVIDER=Other RCLONE_S3_ENDPOINT="http://127.0.0.1:$port"
cat > "$RCLONE_CONFIG" <<END
[store]
type = s3
provider = Other
env_auth = true
endpoint = $RCLONE_S3_ENDPOINT
END
for ((tries = 0; tries < 100; tries++)); do
    ! curl -s -o /dev/null "$RCLONE_S3_ENDPOINT" || break
    sleep 0.2
done
echo "$(rclone version | head -n 1), moto $(python/bin/pip show moto | sed -n 's/^Version: //p')"

# The recordings, here and in the store; one has a name that must be quoted.
mkdir in
for name in sea key road hat answer rain; do cp "$tree/samples/$name".* "in/$name recording.wav"; done
rclone mkdir store:recordings && rclone mkdir store:results && rclone copy in store:recordings || fail "rclone copy"
names=(in/*)
for i in "${!names[@]}"; do
    name="${names[i]#in/}"
    case $i in
        0) path="store:recordings/$name" ;;
        1) path="$(rclone link --expire 1h "store:recordings/$name")" || fail "rclone link" ;;
        *) path="s3://recordings/$name" ;;
    esac
    jq -nc --arg id "$name" --arg path "$path" '{audio_filepath: $path, id: $id}' >> there.jsonl
    jq -nc --arg id "$name" --arg path "$work/in/$name" '{audio_filepath: $path, id: $id}' >> here.jsonl
done
worker() { # SHARDS OUT OPTION...
    "$tree/pipelines/worker.sh" --shards "$1" -o "$2" --scratch scratch "${@:3}" -- --model demo --threads 1 2>> log
}
for from in here there; do hark-shard plan "$from.jsonl" -o "shards-$from" --shard-size 2 2>> log || fail plan; done
worker shards-here out-here || fail "a worker without a store"
hark-shard merge shards-here out-here | jq -c 'del(.source)' > here.txt || fail merge
[ "$(jq -s 'map(.id) | unique | length' here.txt)" = ${#names[@]} ] || fail "not all recordings have a text"

# expect_same OUT STORY
expect_same() {
    hark-shard merge shards-there "$1" | jq -c 'del(.source)' > there.txt || fail "$2: something is missing"
    cmp here.txt there.txt || fail "$2: other words than of files"
    echo "ok: $2"
}

worker shards-there out || fail "a worker"
expect_same out "s3://, a remote of rclone and a signed URL"
[ -z "$(ls scratch)" ] || fail "something is left of what was fetched"

rclone copy out store:results --exclude '/.*/**' && rclone check out store:results --exclude '/.*/**' 2>> log ||
    fail "results are not in the store"
rclone copy store:results elsewhere && hark-shard check shards-there elsewhere > table || fail "results of the store"
expect_same elsewhere "results in the store, merged elsewhere"

for path in recordings/none.wav nobody/none.wav; do
    echo "{\"audio_filepath\":\"s3://$path\",\"id\":\"$path\"}"
done > gone.jsonl
hark-shard plan gone.jsonl -o shards-gone 2>> log
status=0 && worker shards-gone out-gone || status=$?
[ "$status" = 1 ] && [ "$(jq -s 'map(select(.error)) | length' out-gone/*.jsonl)" = 2 ] ||
    fail "objects that are not there: status $status"
echo "ok: an object and a bucket that are not there have failed"

sed -i "s/:$port/:1/" "$RCLONE_CONFIG"
status=0 && RCLONE_S3_ENDPOINT=http://127.0.0.1:1 worker shards-there out-later || status=$?
[ "$status" = 75 ] || fail "a store that does not answer: status $status"
sed -i "s/:1\$/:$port/" "$RCLONE_CONFIG"
worker shards-there out-later || fail "a store that answers again"
expect_same out-later "a store that did not answer, and then did"

RANDOM=5
for ((n = 0; n < 20; n++)); do
    [ ! -e out-killed/00003.done ] || rm -rf out-killed
    setsid "$tree/pipelines/worker.sh" --shards shards-there -o out-killed --scratch scratch -- --model demo \
        --threads 1 2>> log &
    sleep "$((RANDOM % 3)).$((RANDOM % 10))"
    kill -KILL -- -$! 2> /dev/null || true
    wait $! 2> /dev/null || true
done
"$tree/pipelines/worker.sh" --shards shards-there -o out-killed --scratch scratch --until-done -- --model demo \
    --threads 1 2>> log || fail "a worker after kills"
expect_same out-killed "20 kills"
[ -z "$(ls scratch)" ] || fail "something is left of what was fetched"
# From now on the server asks who may do what; this user may read, not list.
read -r AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY < <(python/bin/python - <<'END'
import boto3, os
iam = boto3.client("iam", endpoint_url=os.environ["RCLONE_S3_ENDPOINT"], region_name="us-east-1")
iam.create_user(UserName="reader")
iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument="""{"Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}""")
key = iam.create_access_key(UserName="reader")["AccessKey"]
print(key["AccessKeyId"], key["SecretAccessKey"])
END
)
curl -sf -o /dev/null -H 'Content-Type: text/plain' --data-binary 0 "$RCLONE_S3_ENDPOINT/moto-api/reset-auth" ||
    fail "the server does not begin to ask"
# It takes no signed URL then, which the first shard has.
worker shards-there out-reader --only 00002,00003 || fail "a worker that may not list"
cat out-reader/0000[23].jsonl | cmp - <(cat out/0000[23].jsonl) || fail "other words to keys that do not allow to list"
echo "ok: keys that allow to read, not to list"
: > log
status=0 && worker shards-gone out-hidden || status=$?
[ "$status" = 75 ] && grep -q 'none.wav: cannot fetch: access denied: .*s3:ListBucket' log ||
    fail "an object that may not be there: status $status"
echo "ok: an object that is not there, to keys that do not allow to list: what to allow is named"
echo "all stories passed"
