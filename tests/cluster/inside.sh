#!/usr/bin/env bash
# inside.sh ROOT WORK BIN: for tests/cluster.sh, in namespaces of its own: starts Slurm in the chroot ROOT,
# where the source tree and WORK are at their own paths, and runs the stories there.
set -euo pipefail
root="$1" work="$2" bin="$3"
here="$(cd "$(dirname "$0")" && pwd)"
tree="$(cd "$here/../.." && pwd)"

mount --make-rprivate /
hostname hark1
mkdir -p "$root/host"
mount --rbind / "$root/host"
mount -t proc proc "$root/proc"
mount -t proc proc "$root/host/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
for path in "$tree" "$work"; do
    mkdir -p "$root$path"
    mount --bind "$path" "$root$path"
done

# The tools are this system's: in the chroot each is a call of it.
mkdir -p "$work/bin"
for tool in "$bin"/*; do
    [ -f "$tool" ] || continue
    printf '#!/bin/sh\nexec chroot /host %s "$@"\n' "$tool" > "$work/bin/${tool##*/}"
    chmod +x "$work/bin/${tool##*/}"
done

# Debian 12's Slurm needs cgroups of systemd; this one can do without.
mkdir -p "$root/etc/slurm" "$root/tmp/slurm/ctld" "$work/slurmd"
echo "CgroupPlugin=disabled" > "$root/etc/slurm/cgroup.conf"
cat > "$root/etc/slurm/slurm.conf" <<END
ClusterName=hark
SlurmctldHost=hark1(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
StateSaveLocation=/tmp/slurm/ctld
SlurmdSpoolDir=$work/slurmd
SlurmctldPidFile=/tmp/slurm/ctld.pid
SlurmdPidFile=/tmp/slurm/d.pid
KillWait=3
MinJobAge=900
SchedulerParameters=sched_interval=2,batch_sched_delay=0
NodeName=hark1 NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=other Nodes=ALL MaxTime=INFINITE State=UP
END
echo "127.0.0.1 localhost hark1" > "$root/etc/hosts"
exec env -i PATH="$work/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root LC_ALL=C.UTF-8 \
    chroot "$root" "$here/stories.sh" "$tree" "$work"
