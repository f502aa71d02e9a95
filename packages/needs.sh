#!/usr/bin/env bash
# needs.sh FILE...: fails if a program or library needs a newer system than Ubuntu 22.04: a symbol of glibc
# after 2.35, or of libstdc++ or libgcc after GCC 12. Prints what is too new, else the newest that are needed.
set -euo pipefail
export LC_ALL=C
for file in "$@"; do
    readelf -V "$file" > /dev/null || exit 1
    readelf -VW "$file" | awk -v file="$file" '
        /^Version needs section/ { needs = 1 }
        /^Version (symbols|definition) section/ { needs = 0 }
        needs && /Name: / { for (i = 1; i <= NF; ++i) if ($i == "Name:") print file "\t" $(i + 1) }'
done | awk -F '\t' '
    function newer(a, b,   x, y, i) {
        split(a, x, "."); split(b, y, ".")
        for (i = 1; i <= 3; ++i) if (x[i] + 0 != y[i] + 0) return x[i] + 0 > y[i] + 0
        return 0
    }
    BEGIN { limit["GLIBC"] = "2.35"; limit["GLIBCXX"] = "3.4.30"; limit["CXXABI"] = "1.3.13"; limit["GCC"] = "12.0.0" }
    $2 == "GLIBC_ABI_DT_RELR" { print $1 ": needs " $2 " of glibc 2.36"; failed = 1 }
    {
        at = match($2, /_[0-9]/)
        kind = substr($2, 1, at - 1); version = substr($2, at + 1)
        if (!(kind in limit)) next
        if (newer(version, limit[kind])) { print $1 ": needs " $2; failed = 1 }
        if (newer(version, newest[kind])) newest[kind] = version
    }
    END {
        if (failed) exit 1
        for (kind in newest) print kind "_" newest[kind]
    }'
