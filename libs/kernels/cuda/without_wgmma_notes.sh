#!/usr/bin/env bash
# Runs a compiler of unoptimised CUDA code without ptxas' notes that its wgmma are slow (C7507 and
# C7520): no option of ptxas leaves them out.
set -o pipefail
{ "$@" 2>&1 >&3 | sed '/^ptxas info .*(C75\(07\|20\))/d' >&2; } 3>&1
