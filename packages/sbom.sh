#!/usr/bin/env bash
# sbom.sh NAME VERSION COMMIT [-L DIR]... FILE...: the bill of materials of a package, as SPDX 2.3 in JSON, on
# stdout: NAME, and each library that its programs FILE load with its version, source and SHA-256.
# Its time is SOURCE_DATE_EPOCH. Needs jq.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
name="$1" version="$2" commit="$3"
shift 3
"$here/libraries.sh" "$@" | while IFS=$'\t' read -r library path fields; do
    printf '%s\t%s\t%s\n' "$library" "$fields" "$(sha256sum "$path" | cut -d ' ' -f 1)"
done | jq -Rn --arg name "$name" --arg version "$version" --arg commit "$commit" \
    --arg created "$(date -u -d "@${SOURCE_DATE_EPOCH:?is not set}" +%FT%TZ)" '
    def known: if . == "-" then "NOASSERTION" else . end;
    def package($id; $name; $version; $licence):
        {SPDXID: ("SPDXRef-" + $id), name: $name, versionInfo: $version, downloadLocation: "NOASSERTION",
         filesAnalyzed: false, licenseConcluded: "NOASSERTION", licenseDeclared: $licence,
         copyrightText: "NOASSERTION", supplier: "NOASSERTION"};
    [inputs | split("\t") | {library: .[0], package: .[1], version: .[2], source: .[3], sha256: .[4]}] as $libraries |
    {spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", name: "\($name)-\($version)",
     documentNamespace: "urn:hark:\($name):\($version):\($commit)",
     creationInfo: {created: $created, creators: ["Tool: packages/sbom.sh"]},
     packages: ([package("hark"; $name; $version; "MIT") + {sourceInfo: "commit \($commit)"}] +
         [$libraries[] | package("library-" + (.library | gsub("[^A-Za-z0-9.-]"; "-")); .library;
              .version | known; "NOASSERTION") +
          {sourceInfo: "Debian package \(.package), source \(.source)",
           checksums: [{algorithm: "SHA256", checksumValue: .sha256}]} |
          if .versionInfo == "NOASSERTION" then .sourceInfo = "no package" else . end]),
     relationships: ([{spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES",
              relatedSpdxElement: "SPDXRef-hark"}] +
         [$libraries[] | {spdxElementId: "SPDXRef-hark", relationshipType: "DEPENDS_ON",
              relatedSpdxElement: ("SPDXRef-library-" + (.library | gsub("[^A-Za-z0-9.-]"; "-")))}])}'
