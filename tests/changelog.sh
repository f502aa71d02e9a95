#!/usr/bin/env bash
# Checks packages/changelog.sh on a small repository of two versions: what each has, and that the first has only
# what is new.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export HOME="$work" GIT_CONFIG_NOSYSTEM=1
export GIT_{AUTHOR,COMMITTER}_NAME=tester GIT_{AUTHOR,COMMITTER}_EMAIL=tester@localhost
cd "$work"
git init -q .
commit() { git commit -q --allow-empty -m "$1"; }
set_version() {
    echo "project(hark VERSION $1 LANGUAGES C CXX)" > CMakeLists.txt
    git add CMakeLists.txt
    commit "$2"
}
commit 'feat(mel): a front end'
set_version 0.1.0 'build: the first version'
commit 'feat!: tools'
commit 'fix(serve): a fault that nobody met'
set_version 0.2.0 'feat(gpt-train): AdamW'
commit 'fix(serve): uploads of 2 GB'
commit 'refactor(serve): names'
commit 'perf(vad): half the time'
commit 'feat(audio, mel)!: 48 kHz'
commit 'feat(bench): a table'
diff - <("$here/../packages/changelog.sh" "$work") << 'END'
# Changes

Written from the commits by `packages/changelog.sh`. The version is that of `hark --version`.

## 0.2.0

### New

#### Speech

- Breaking: 48 kHz

#### Training

- AdamW

### Faster

#### Speech

- half the time

### Fixed

#### Server

- uploads of 2 GB

## 0.1.0

### Commands

- tools

### Speech

- a front end
END
