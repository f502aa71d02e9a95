#!/usr/bin/env bash
# Prints every #include of libs/ that points up in the list of libs/CMakeLists.txt, or from
# one of audio, whisper and gpt to another; exit 1 if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

grep -rnoE --include='*.cc' --include='*.cu' --include='*.h' --include='*.cuh' '#include "[^"]+"' libs |
    awk -F '[:"]' -v order="$(sed -n 's/.*add_subdirectory(\(.*\))/\1/p' libs/CMakeLists.txt | tr '\n' ' ')" '
    BEGIN { n = split(order, names, " "); for (i = 1; i <= n; ++i) level[names[i]] = i
            apart["audio"] = apart["whisper"] = apart["gpt"] = 1 }
    { split($1, from, "/"); split($4, to, "/"); a = from[2]; b = to[1]
      if (!(b in level)) { print $1 ":" $2 ": " $4 ": not a folder of libs/"; bad = 1; next }
      if (level[b] > level[a] || (a != b && a in apart && b in apart)) {
          print $1 ":" $2 ": " a " includes " $4; bad = 1 } }
    END { exit bad }'
