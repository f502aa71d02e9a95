#!/usr/bin/env bash
# Checks packages/release.sh on a small repository: what it refuses, and the tag that it makes.
set -euo pipefail
. "$(dirname "$0")/support/repository.sh"
release() { "$here/../packages/release.sh" "$@" . 2>&1; }
expect_refused() {
    local said
    ! said="$(release)" || { echo "release.sh: expected a refusal: $1" >&2 && exit 1; }
    [[ "$said" == *"$1"* ]] || { echo "release.sh: expected '$1', got '$said'" >&2 && exit 1; }
}
write_changes() {
    "$here/../packages/changelog.sh" . > CHANGELOG.md
    git add CHANGELOG.md
    commit 'docs: the changes'
}

set_version 0.9.0 'build: version 0.9.0'
commit 'feat(mel): a front end'
expect_refused "CHANGELOG.md is not that of the commits"
write_changes
touch left
expect_refused "not committed"
rm left
[ "$(release --dry-run)" = "v0.9.0 could be tagged" ] && [ -z "$(git tag)" ]
release > /dev/null
[ "$(git for-each-ref --format='%(objecttype) %(contents:subject)' refs/tags/v0.9.0)" = "tag hark 0.9.0" ]
[ "$(git rev-parse 'v0.9.0^{commit}')" = "$(git rev-parse HEAD)" ]
expect_refused "v0.9.0 is a release already"
set_version 0.8.1 'build: version 0.8.1'
write_changes
expect_refused "v0.9.0 is newer than 0.8.1"
set_version 0.10.0 'build: version 0.10.0' # is newer than 0.9.0, though not as a text
expect_refused "CHANGELOG.md is not that of the commits"
write_changes
release > /dev/null
git clone -q --depth 1 "file://$work/tree" "$work/shallow"
cd "$work/shallow"
expect_refused "the history is cut off"
