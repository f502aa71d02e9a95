#!/usr/bin/env bash
# changelog.sh [REPOSITORY]: writes CHANGELOG.md from the commits of a repository (this one) to stdout: for each
# version what is new, faster and fixed, the newest first. A version's commits are those since CMakeLists.txt
# got its number. Commits of kinds and scopes that no user meets are left out, and in the first version all
# but what is new: nothing was released before it that could be fixed. A scope that it does not know is an error.
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
        function scopes(name, list,    words, i) {
            for (i = split(list, words, " "); i; --i) area[words[i]] = name
        }
        BEGIN {
            split("feat perf fix", kinds, " ")
            heading["feat"] = "New"; heading["perf"] = "Faster"; heading["fix"] = "Fixed"
            scopes("Speech", "whisper whisper-transcribe whisper-eval eval audio audio-decode mel vad speech redact")
            scopes("Language models", "gpt gpt-generate gpt-embed gpt-eval gpt-tokenize generate text models")
            scopes("Models and their files", "hub hark-model formats families")
            scopes("Training", "gpt-train train comm")
            scopes("Server", "serve constrain")
            scopes("Commands", "pipelines hark transcribe live ask summarize search batch worker parallel slurm lambda " \
                "server plot plots shard shards doctor advise advice profile trace cli core packages wasm tools")
            scopes("Computing", "kernels cuda runtime linear attention experts norm rope sampling quant nn")
            scopes("-", "bench build ci docs scripts test tests")
            area[""] = "Commands"
            split("Commands|Speech|Language models|Models and their files|Training|Server|Computing", areas, "|")
        }
        match($0, /^(feat|perf|fix)(\([^)]*\))?!?: /) {
            kind = scope = substr($0, 1, RLENGTH - 2); text = substr($0, RLENGTH + 1)
            breaks = kind ~ /!$/
            sub(/[^a-z].*/, "", kind)
            sub(/^[a-z]*\(?/, "", scope); sub(/[,)!].*/, "", scope)
            if (!(scope in area)) {
                print "changelog.sh: " $0 ": no area has this scope; give it one in changelog.sh" > "/dev/stderr"
                unknown = 1
                next
            }
            if (area[scope] == "-" || (first && kind != "feat")) next
            lines[kind, area[scope]] = lines[kind, area[scope]] "- " (breaks && !first ? "Breaking: " : "") text "\n"
        }
        END {
            if (unknown) exit 1
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
