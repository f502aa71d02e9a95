#!/usr/bin/env bash
# Usage: packages/release.sh [--dry-run] [REPOSITORY]: tags the commit that is checked out as a release: an
# annotated tag vVERSION, of the version in CMakeLists.txt. Nothing may be uncommitted, CHANGELOG.md must be
# what packages/changelog.sh writes, and the version must be newer than every tag. --dry-run only checks.
# It pushes nothing. docs/packages.md has the steps of a release.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
dry_run=""
while [ $# -gt 0 ]; do
    case "$1" in
        -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;;
        --dry-run) dry_run=yes ;;
        -*) echo "release.sh: no option '$1'; try packages/release.sh --help" >&2 && exit 2 ;;
        *) break ;;
    esac
    shift
done
cd "${1:-$here/..}"
refuse() {
    echo "release.sh: $*" >&2
    exit 1
}

version="$(sed -n 's/^project(hark VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)"
[ -n "$version" ] || refuse "CMakeLists.txt has no version"
[ "$(git rev-parse --is-shallow-repository)" = false ] ||
    refuse "the history is cut off, and CHANGELOG.md is made from it; git fetch --unshallow"
[ -z "$(git status --porcelain)" ] || refuse "there are changes that are not committed"
"$here/changelog.sh" . | cmp -s - CHANGELOG.md ||
    refuse "CHANGELOG.md is not that of the commits; packages/changelog.sh > CHANGELOG.md, and commit it"
latest="$(git tag --list 'v[0-9]*' --sort=-version:refname | sed -n '1s/^v//p')"
[ "$latest" != "$version" ] || refuse "v$version is a release already; give CMakeLists.txt a new version"
[ "$(printf '%s\n' "$latest" "$version" | sort -V | tail -n 1)" = "$version" ] ||
    refuse "v$latest is newer than $version"
[ -z "$dry_run" ] || { echo "v$version could be tagged" && exit; }
git tag --annotate "v$version" --message "hark $version"
echo "v$version is $(git rev-parse --short=12 HEAD); git push origin v$version publishes it"
