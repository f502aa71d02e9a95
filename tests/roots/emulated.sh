#!/usr/bin/env bash
# emulated.sh QEMU COMMAND...: runs a command in namespaces of its own, in which the kernel starts programs for aarch64
# by QEMU, a static qemu-aarch64. This machine's other processes see nothing of it. Needs root, and Linux 6.7 or newer,
# where a user namespace has its own binfmt_misc.
set -euo pipefail
case "${HARK_EMULATED:-}" in
    "")
        [ "$(id -u)" = 0 ] || { echo "emulated.sh: needs root" >&2 && exit 1; }
        # Each of these processes is killed when the one that started it ends.
        HARK_EMULATED=waits setpriv --pdeathsig KILL \
            unshare --user --mount --pid --fork --kill-child "$0" "$@" <&0 &
        child=$!
        trap 'exit 129' HUP
        trap 'exit 130' INT
        trap 'exit 143' TERM
        until [ ! "/proc/$child/ns/user" -ef /proc/self/ns/user ]; do sleep 0.1; done
        # Every user and group of the new namespace is the one of the same number out here.
        for map in uid_map gid_map; do echo "0 0 4294967295" > "/proc/$child/$map"; done
        status=0
        wait "$child" || status=$?
        exit "$status"
        ;;
    waits)
        until [ "$(id -g)" = 0 ]; do sleep 0.1; done
        HARK_EMULATED=mapped exec "$0" "$@"  # which begins with all capabilities
        ;;
esac
unset HARK_EMULATED
mount --make-rprivate /
mount -t proc proc /proc
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
if [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
    # The first 20 bytes of an ELF file and which of their bits count; F opens QEMU now, for any root folder.
    elf='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    echo ":qemu-aarch64:M::$elf:$mask:$1:PF" > /proc/sys/fs/binfmt_misc/register
fi
shift
exec setpriv --pdeathsig KILL "$@"  # what gave the exec above its capabilities cleared --kill-child's
