#!/usr/bin/env bash
# run.sh ROOT PATH... -- COMMAND...: runs a command as root in a copy of the system in the folder ROOT, which is
# forgotten when it ends, with all its processes. Each PATH of this machine is there at its own place; what
# is written below it stays. The network is this machine's. Needs root.
set -euo pipefail
if [ -z "${HARK_ROOT_INSIDE:-}" ]; then
    HARK_ROOT_INSIDE=yes exec unshare --mount --pid --fork --kill-child "$0" "$@"
fi
unset HARK_ROOT_INSIDE
base="$(realpath "$1")"
shift
mount --make-rprivate /
# A place in which nothing of this machine's is looked for.
place=/mnt
mount -t tmpfs -o mode=755 tmpfs "$place"
mkdir "$place"/{upper,work,root}
mount -t overlay -o "lowerdir=$base,upperdir=$place/upper,workdir=$place/work" overlay "$place/root"
root="$place/root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
cp -L --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
while [ "$1" != -- ]; do
    mkdir -p "$root$1"
    mount --rbind "$1" "$root$1"
    shift
done
shift
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    chroot "$root" "$@"
