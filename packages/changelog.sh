#!/usr/bin/env bash
# changelog.sh [REPOSITORY]: writes CHANGELOG.md from the commits of a repository (this one) to stdout: for each
# version what is new, faster and fixed, the newest first. A version's commits are those since CMakeLists.txt
# got its number. Commits of kinds and scopes that no user meets are left out, and in the first version all
# but what is new: nothing was released before it that could be fixed.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
export LC_ALL=C
version_at() { git show "$1:CMakeLists.txt" | sed -n 's/^project(hark VERSION \([0-9.]*\).*/\1/p'; }

# The commits that set a version, the oldest first.
mapfile -t begins < <(git log --reverse --format=%H -G'^project\(hark VERSION' -- CMakeLists.txt)
[ ${#begins[@]} -gt 0 ] || { echo "changelog.sh: no commit sets a version" >&2 && exit 1; }

# entries RANGE FIRST: the commits of a range as lines of Markdown under headings.
entries() {
    git log --reverse --no-merges --format=%s "$1" | awk -v first="$2" '
        BEGIN {
            split("feat perf fix", kinds, " ")
            heading["feat"] = "New"; heading["perf"] = "Faster"; heading["fix"] = "Fixed"
            area["whisper"] = area["whisper-transcribe"] = area["audio"] = area["mel"] = area["vad"] = "Speech"
            area["speech"] = area["whisper-eval"] = area["eval"] = area["audio-decode"] = area["redact"] = "Speech"
            area["gpt"] = area["gpt-generate"] = area["generate"] = area["text"] = "Language models"
            area["gpt-embed"] = area["gpt-eval"] = area["gpt-tokenize"] = area["models"] = "Language models"
            area["hub"] = area["hark-model"] = "Models and their files"
            area["gpt-train"] = area["train"] = "Training"
            area["serve"] = "Server"
            area["pipelines"] = area["hark"] = area["lambda"] = area["shard"] = area["doctor"] = "Commands"
            area["profile"] = area["trace"] = area["advise"] = area["shards"] = area["worker"] = "Commands"
            area["cli"] = area["plots"] = area["packages"] = area["wasm"] = area["tools"] = area[""] = "Commands"
            area["kernels"] = area["cuda"] = "Computing"
            split("Commands|Speech|Language models|Models and their files|Training|Server|Computing", areas, "|")
        }
        match($0, /^(feat|perf|fix)(\([^)]*\))?!?: /) {
            kind = scope = substr($0, 1, RLENGTH - 2); text = substr($0, RLENGTH + 1)
            breaks = kind ~ /!$/
            sub(/[^a-z].*/, "", kind)
            sub(/^[a-z]*\(?/, "", scope); sub(/[,)!].*/, "", scope)
            if (!(scope in area) || (first && kind != "feat")) next
            lines[kind, area[scope]] = lines[kind, area[scope]] "- " (breaks && !first ? "Breaking: " : "") text "\n"
        }
        END {
            for (k = 1; k <= 3; ++k) {
                kind = kinds[k]; shown = 0
                for (a = 1; a in areas; ++a) if ((kind, areas[a]) in lines) {
                    if (!shown++ && !first) print "\n### " heading[kind]
                    text = lines[kind, areas[a]]
                    print "\n" (first ? "### " : "#### ") areas[a] "\n\n" substr(text, 1, length(text) - 1)
                }
            }
        }'
}

echo "# Changes"
echo
echo "Written from the commits by \`packages/changelog.sh\`. The version is that of \`hark --version\`."
for ((i = ${#begins[@]} - 1; i >= 0; i--)); do
    [ "$i" -eq $((${#begins[@]} - 1)) ] && end=HEAD || end="${begins[i + 1]}^"
    [ "$i" -eq 0 ] && range="$end" first=1 || range="${begins[i]}^..$end" first=""
    printf '\n## %s\n' "$(version_at "${begins[i]}")"
    entries "$range" "$first"
done
