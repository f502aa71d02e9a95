#!/usr/bin/env bash
# Usage: tests/cluster.sh [BIN]: hark slurm on a real Slurm: slurmctld and slurmd of Debian 13 in a chroot
# and namespaces of their own, with two workers at a time. Stories: an array job and its merge; an element
# that reaches its time limit, is queued again and continues; one that is cancelled; a node that is lost;
# results that are the bytes of one machine; hark slurm itself killed 20 times. Then gpt-train under srun, killed
# and queued again, and under srun --mpi=pmix. BIN has the tools (build/bin) and ../lib/libhark-mpi.so. Needs
# root; the chroot of 200 MB is made once, in HARK_CLUSTER_ROOT (/var/tmp/hark-cluster). Not part of
# tests/run.sh: it takes minutes.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
bin="$(realpath -- "${1:-$here/../build/bin}")"
root="${HARK_CLUSTER_ROOT:-/var/tmp/hark-cluster}"
for file in whisper-transcribe hark-shard gpt-train gpt-tokenize ../lib/libhark-mpi.so; do
    [ -e "$bin/$file" ] || {
        echo "cluster.sh: there is no $bin/$file; build the tools first, with -DHARK_MPI=ON" >&2
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
