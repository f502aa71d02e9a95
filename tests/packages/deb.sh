#!/usr/bin/env bash
# deb.sh TREE OUT: for tests/packages.sh, in a fresh Debian 12: installs the .deb files of OUT, tries and purges them.
set -euo pipefail
tree="$1" out="$2" path=/usr/bin:/bin
. "$tree/tests/packages/try.sh"
begin_user
apt-get update -qq
everything() {
    find / -xdev -iname '*hark*' ! -path "$tree*" ! -path "$out*" ! -path '/proc/*' ! -path '/tmp/*' | sort
}
everything > /tmp/before
apt-get install -y -qq --no-install-recommends "$out"/hark_*.deb "$out"/hark-models-demo_*.deb "$out"/hark-doc_*.deb \
    > /tmp/install.log 2>&1 || { tail -n 20 /tmp/install.log >&2 && fail "the packages cannot be installed"; }
try_hark "$tree"
expect_documents /usr/share
if ls "$out"/hark-cuda_*.deb > /dev/null 2>&1; then
    dpkg -i "$out"/hark-cuda_*.deb > /dev/null
    as_user hark --version | grep '^devices: cpu, cuda$' > /dev/null || fail "the CUDA library is not found"
    said="$(as_user hark transcribe "$tree/samples/hat.wav" --model demo --device cuda 2>&1)" &&
        fail "there is no cuBLAS, and CUDA works"
    grep -q libcublasLt <<< "$said" || fail "the error does not name cuBLAS: $said"
    dpkg --purge hark-cuda > /dev/null
fi
dpkg --purge hark-doc hark-models-demo hark > /tmp/purge.log 2>&1 || fail "cannot be purged: $(cat /tmp/purge.log)"
everything > /tmp/after
diff /tmp/before /tmp/after || fail "files are left"
