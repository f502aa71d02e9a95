#!/usr/bin/env bash
# Checks packages/changelog.sh on a small repository of two versions: what each has, that the first has only what is
# new, and that an unknown scope is an error.
set -euo pipefail
. "$(dirname "$0")/support/repository.sh"
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
commit 'perf(kernels): products in half the time'
diff - <("$here/../packages/changelog.sh" .) << 'END'
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

#### Computing

- products in half the time

### Fixed

#### Server

- uploads of 2 GB

## 0.1.0

### Commands

- tools

### Speech

- a front end
END
# A scope without an area would be left out silently.
commit 'fix(nowhere): a fault'
if said="$("$here/../packages/changelog.sh" . 2>&1 > /dev/null)"; then
    echo "changelog.sh: expected an error for an unknown scope" >&2 && exit 1
fi
[ "$said" = "changelog.sh: fix(nowhere): a fault: no area has this scope; give it one in changelog.sh" ]
