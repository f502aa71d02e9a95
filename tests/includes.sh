#!/usr/bin/env bash
# Prints every #include of libs/ that points up in the list of libs/CMakeLists.txt, from one of audio, whisper and gpt to
# another, or up in the list of rooms of gpt or whisper below, and every header of libs/ that includes, itself or through
# others, more than MOST headers of libs/; exit 1 if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."
most=45

grep -rnoE --include='*.cc' --include='*.cu' --include='*.h' --include='*.cuh' '#include "[^"]+"' libs |
    awk -F '[:"]' -v most="$most" \
        -v order="$(sed -n 's/.*add_subdirectory(\(.*\))/\1/p' libs/CMakeLists.txt | tr '\n' ' ')" '
    BEGIN { n = split(order, names, " "); for (i = 1; i <= n; ++i) level[names[i]] = i
            apart["audio"] = apart["whisper"] = apart["gpt"] = 1
            rooms["gpt"] = "families decoder sampling engine chat answers eval embed train"
            rooms["whisper"] = "model output transcribe"
            for (lib in rooms) { n = split(rooms[lib], names, " ")
                                 for (i = 1; i <= n; ++i) floor[lib "/" names[i]] = i } }
    { split($1, from, "/"); split($4, to, "/"); a = from[2]; b = to[1]
      if (!(b in level)) { print $1 ":" $2 ": " $4 ": not a folder of libs/"; bad = 1; next }
      if (level[b] > level[a] || (a != b && a in apart && b in apart)) {
          print $1 ":" $2 ": " a " includes " $4; bad = 1 }
      if (a == b && a in rooms && floor[b "/" to[2]] > floor[a "/" from[3]]) {
          print $1 ":" $2 ": " from[3] " includes " $4; bad = 1 }
      if ($1 ~ /\.(h|cuh)$/) includes[$1] = includes[$1] " libs/" $4 }
    # How many headers are seen by that one and by those that it includes, which `seen` does not have yet.
    function count(header,    all, n, i, sum) {
        if (header in seen) return 0
        seen[header]; sum = 1
        n = split(includes[header], all, " ")
        for (i = 1; i <= n; ++i) sum += count(all[i])
        return sum }
    END { for (header in includes) {
              split("", seen); sum = count(header) - 1
              if (sum > most) { print header ": includes " sum " headers of libs/, at most " most; bad = 1 } }
          exit bad }'
