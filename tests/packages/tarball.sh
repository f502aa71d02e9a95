#!/usr/bin/env bash
# tarball.sh TREE TARBALL: for tests/packages.sh, in a bare system without a network: unpacks hark's tar file into a
# folder whose name has a space, tries it, and tries it again in another place.
set -euo pipefail
tree="$1" tarball="$2"
. "$tree/tests/packages/try.sh"
begin_user
folder="/home/tester/some place"
runuser -u tester -- mkdir "$folder"
runuser -u tester -- tar -C "$folder" -xf "$tarball"
root="$(echo "$folder"/hark-*)"
path="$root/bin:/usr/bin:/bin"
try_hark "$tree"
expect_documents "$root/share"
# Nothing but glibc and the compiler's libraries is the system's.
for file in "$root"/bin/* "$root"/lib/*.so*; do
    [ -f "$file" ] || continue
    # NCCL is the machine's own.
    ldd "$file" 2>&1 | grep -v 'libnccl[.]so' > /tmp/libraries
    ! grep -H 'not found' /tmp/libraries || fail "$file: lacks a library"
    grep -v -e "$root" -e linux-vdso -e ld-linux /tmp/libraries |
        grep -vE 'lib(c|m|mvec|pthread|dl|rt|resolv|util|stdc\+\+|gcc_s)\.so' &&
        fail "$file: takes a library of the system"
done
case "$tarball" in
    *-cuda*)
        as_user hark --version | grep '^devices: cpu, cuda$' > /dev/null || fail "the CUDA library is not found"
        said="$(as_user hark transcribe "$tree/samples/hat.wav" --model demo --device cuda 2>&1)" &&
            fail "there is no GPU, and CUDA works"
        grep -q 'driver' <<< "$said" || fail "the error does not name the driver: $said"
        tr '\n' ' ' < "$root/README" | grep -E 'driver +[0-9]{3}' > /dev/null || fail "README does not state the driver"
        ;;
esac
mv "$root" /home/tester/moved
path="/home/tester/moved/bin:/usr/bin:/bin"
as_user hark transcribe "$tree/samples/story.mp3" --model demo | diff /tmp/expected - ||
    fail "it does not run when moved"
