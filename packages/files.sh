#!/usr/bin/env bash
# files.sh FOLDER VERSION COMMIT MAINTAINER MAN: for cmake/packages.cmake: writes into FOLDER what Debian's
# packages have of themselves (copyright, changelog), and the man pages of the folder MAN, compressed.
# Times are SOURCE_DATE_EPOCH's, so that two builds have the same bytes.
set -euo pipefail
folder="$1" version="$2" commit="$3" maintainer="$4" man="$5"
here="$(cd "$(dirname "$0")" && pwd)"
: "${SOURCE_DATE_EPOCH:?is not set; run packages/build.sh}"

rm -rf "$folder/man" "$folder/doc"
mkdir -p "$folder/man"
for page in "$man"/*.1; do
    gzip -9nc "$page" > "$folder/man/${page##*/}.gz"
done
for package in hark hark-cuda hark-models-demo hark-doc; do
    mkdir -p "$folder/doc/$package"
    cat "$here/copyright" "$here/../LICENSE" > "$folder/doc/$package/copyright"
    gzip -9nc > "$folder/doc/$package/changelog.gz" << END
hark ($version) unstable; urgency=medium

  * hark $version, commit $commit. CHANGELOG.md in hark-doc says what is new.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
done
