#!/usr/bin/env bash
# Usage: tests/cloud.sh [BIN [TEST...]]: hark lambda against a mock of Lambda's cloud API: stories of
# what goes wrong, each ending with no instance and all results. ssh is replaced by a program that runs
# commands in a folder here; nothing leaves this machine. BIN has the tools (build/bin). Arguments after
# it choose stories: -k lost. Installs Debian's python3, rsync, jq, curl and ssh-keygen if they are
# missing, and fetches a parser of Terraform's language from PyPI. Not part of tests/run.sh, whose
# tests need no Python.
set -euo pipefail
cd "$(dirname "$0")/.."
. pipelines/packages.sh
install_packages python3 python3-pip python3-yaml rsync jq curl openssh-client bsdextrautils procps
bin="$(realpath -- "${1:-build/bin}")"
decoders="$(realpath -m -- "$bin/../lib/libhark-av.so")"
for file in "$bin"/{whisper-transcribe,gpt-train} "$decoders"; do
    [ -e "$file" ] || { echo "cloud.sh: there is no $file; build the tools first" >&2 && exit 2; }
done
shift $(($# < 1 ? $# : 1))
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# A package as cmake --install makes it, of what the stories need.
prefix="$work/hark"
mkdir -p "$prefix"/{bin,lib/hark,libexec/hark,share/hark/models}
cp "$bin"/{hark,audio-decode,mel,whisper-transcribe,gpt-train,gpt-tokenize,hark-model} "$prefix/bin"
cp "$decoders" "$prefix/lib/hark"
strip "$prefix"/{bin,lib/hark}/* 2> /dev/null || true
cp pipelines/batch.sh "$prefix/libexec/hark/batch"
cp pipelines/*.sh "$prefix/libexec/hark"
cp -r models/whisper-demo "$prefix/share/hark/models"
tar -C "$work" -cf "$work/hark.tar" hark

python3 -m pip install --quiet --root-user-action=ignore --target "$work/python" python-hcl2==8.1.4
export PYTHONPATH="$work/python"

export HARK_CLOUD_BIN="$bin" HARK_CLOUD_PACKAGE="$work/hark.tar" PYTHONDONTWRITEBYTECODE=1
python3 -m unittest discover --verbose --start-directory tests/cloud --pattern 'test_*.py' "$@"
