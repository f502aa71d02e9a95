#!/usr/bin/env bash
# Usage: tests/cluster.sh [BIN]: hark slurm on a real Slurm: slurmctld and slurmd of Debian 13 in a chroot
# and namespaces of their own, with two workers at a time. Stories: an array job and its merge; an element
# that reaches its time limit, is queued again and continues; one that is cancelled; a node that is lost;
# results that are the bytes of one machine. Then gpt-train under srun, killed and queued again. BIN has the
# tools (build/bin). Needs root; the chroot of 200 MB is made once, in HARK_CLUSTER_ROOT
# (/var/tmp/hark-cluster). Not part of tests/run.sh: it takes minutes.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
bin="$(realpath -- "${1:-$here/../build/bin}")"
root="${HARK_CLUSTER_ROOT:-/var/tmp/hark-cluster}"
for tool in whisper-transcribe hark-shard gpt-train gpt-tokenize; do
    [ -x "$bin/$tool" ] || {
        echo "cluster.sh: $bin: has no $tool; build the tools first" >&2
        exit 2
    }
done
. "$here/../pipelines/packages.sh"
. "$here/roots/make.sh"
make_root "$root" trixie minbase slurmd slurmctld slurm-client munge jq curl
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# All processes end with this one, whatever happens.
unshare --mount --pid --uts --fork --kill-child "$here/cluster/inside.sh" "$root" "$work" "$bin"
