#!/usr/bin/env bash
# docker.sh ROOT OUT BUILD DOCKERFILE: for tests/packages.sh, where docker is not: runs the steps of each stage
# of a Dockerfile in a copy of the Debian in ROOT, and a transcription as the last stage's user. The tree and the
# finished build in BUILD are the stage build's, at their own paths, so that what is built already is not built again.
# It knows the instructions that hark's files have and refuses others. A stage that no Debian begins is one
# whose files this machine has at the same paths.
set -euo pipefail
root="$1" out="$2" build="$3" file="$4"
tree="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d "$out/docker.XXXXXX")"
trap 'rm -rf "$work"' EXIT
fail() { echo "docker.sh: $file: $*" >&2 && exit 1; }

# One instruction per line, without comments.
sed -e '/^ *#/d' -e '/^ *$/d' "$file" | sed -e ':a' -e '/\\$/{N;s/\\\n */ /;ba' -e '}' |
    sed -e "s,/src,$tree,g" -e "s,/build/hark,$build,g" \
        -e "s,packages/build.sh,packages/build.sh --allow-changes," > "$work/lines"

# begin NAME: the script of a stage. end: runs it, and keeps what later stages copy from it.
stage="" base=""
begin() {
    stage="$1" base="$2"
    printf '%s\n' 'set -eu' 'as=""' > "$work/$stage.sh"
}
end() {
    local from path
    [ -n "$stage" ] && [[ "$base" == debian:bookworm* ]] || return 0
    while read -r _ from path _; do
        [ "$from" != "--from=$stage" ] || printf 'mkdir -p %q && cp -a %q %q\n' \
            "$work/$stage$path" "$path/." "$work/$stage$path" >> "$work/$stage.sh"
    done < <(grep '^COPY --from' "$work/lines")
    echo "== stage $stage of ${file##*/}" >&2
    "$tree/tests/roots/run.sh" "$root" "$tree" "$out" "$build" $([ ! -d /usr/local/cuda/ ] || echo /usr/local/cuda) \
        $([ ! -d /usr/local/cuda-13.0 ] || echo /usr/local/cuda-13.0) -- sh "$work/$stage.sh" > "$work/log" 2>&1 || {
        tail -n 30 "$work/log" >&2
        fail "stage $stage fails"
    }
}

while read -r word rest; do
    case "$word" in
        FROM)
            end
            [[ "$rest" =~ ^([^ ]+)(\ AS\ ([a-z]+))?$ ]] || fail "FROM $rest"
            begin "${BASH_REMATCH[3]:-last}" "${BASH_REMATCH[1]}"
            ;;
        WORKDIR) printf 'mkdir -p %q && cd %q\n' "$rest" "$rest" ;;
        COPY)
            case "$rest" in
                ". .") ;; # the tree is there
                --from=cuda\ *) ;;
                --from=*) read -r from path to <<< "$rest" && printf 'mkdir -p %q && cp -a %q %q\n' \
                    "$to" "$work/${from#--from=}$path/." "$to" ;;
                *) fail "COPY $rest" ;;
            esac
            ;;
        ENV) for pair in $rest; do printf 'export %q\n' "$pair"; done ;;
        USER) printf 'as="setpriv --reuid %s --regid %s --clear-groups"\n' "$rest" "$rest" ;;
        RUN) printf '$as sh -euc %q\n' "$rest" ;;
        LABEL) ;;
        CMD) printf '$as %s > /dev/null\n' "$(jq -r '@sh' <<< "$rest")" ;;
        *) fail "does not know $word" ;;
    esac >> "$work/$stage.sh"
done < "$work/lines"
cat >> "$work/$stage.sh" << END
[ "\$(\$as id -u)" != 0 ]
\$as touch made-by-the-user
\$as env HOME=/home/hark hark transcribe $tree/samples/story.mp3 --model demo > /tmp/text
\$as hark --version
cp /tmp/text $work/text
END
end
awk '/^```text$/ { text = 1; next } /^```$/ { text = 0 } text' "$tree/README.md" | diff - "$work/text" ||
    fail "the sample's text is another"
