# Sourced after recordings.sh by the commands that transcribe many recordings into a folder and can be
# stopped: what the runs before have done with each. The commands set `output`, the folder; `list`, a
# file of more inputs; `exists`, the error of a file in the way; `retry` and `overwrite`, if wanted.
# shellcheck shell=bash disable=SC2154,SC2034

declare -A state=()       # of a recording: there, transcribed, failed, or not set
declare -A reason=()      # of one that failed
declare -A written=()     # transcripts of this run and of those before: their paths within `output`
todo=()                   # those without a state

# All recordings, and what each one's transcripts are called.
collect() {
    local line bad
    if [ -n "$list" ]; then
        [ "$list" != - ] || list=/dev/stdin
        [ -r "$list" ] || die "$list: cannot read this list"
        while IFS= read -r line || [ -n "$line" ]; do
            line="${line%$'\r'}" # of a list from Windows
            [ -z "$line" ] || inputs+=("$line")
        done < "$list"
    fi
    add_recordings "$output" "${inputs[@]}"
    [ ${#recordings[@]} -gt 0 ] || die "$(quoted "${inputs[@]:0:1}"): found no recordings"
    for line in "${recordings[@]}"; do
        [[ "$line" != *[$'\t\r\n']* ]] ||
            die "${line@Q}: expected a path without tab, carriage return and newline"
    done
    bad="$(printf '%s\n' "${recordings[@]}" | grep -axvm1 '.*')"
    [ -z "$bad" ] || die "$bad: expected a path in UTF-8"
    name_transcripts "$output/failed.tsv"
}

# What the runs before have done with each recording.
recall() {
    local path foreign
    recall_written
    [ -n "$retry$overwrite" ] || recall_failures "$output/failed.tsv"
    for path in "${recordings[@]}"; do
        [ -z "$overwrite" ] || break
        if finished "$path"; then
            state[$path]=there
        elif find_foreign "$path"; then
            state[$path]=failed reason[$path]="$foreign $exists"
        fi
    done
    list_todo
}

recall_written() {
    local file
    [ -f "$output/.hark/written" ] || return 0
    while IFS= read -r file; do
        [ -z "$file" ] || written[$file]=yes
    done < "$output/.hark/written"
}

# recall_failures FILE: lines of a recording, a tab and its error.
recall_failures() {
    local path error failures="$1"
    [ -f "$failures" ] || return 0
    while IFS=$'\t' read -r path error; do
        # What has changed since may have been mended, and a file that existed may have been moved.
        [ -z "${target[$path]:-}" ] || [ "$failures" -ot "$path" ] ||
            [[ "$error" == *" $exists" ]] ||
            state[$path]=failed reason[$path]="$error"
    done < <(cat "$failures")
}

# find_foreign PATH: sets `foreign` to a file that has the name of a transcript of this recording,
# but that no run has written. Returns 1 if there is none.
find_foreign() {
    local file
    first_file is_foreign "$1" && foreign="$file"
}

# is_foreign FILE
is_foreign() { exists "$1" && [ -z "${written[${1#"$output/"}]:-}" ]; }

list_todo() {
    local path
    todo=()
    for path in "${recordings[@]}"; do
        [ -n "${state[$path]:-}" ] || todo+=("$path")
    done
}

# count_outcomes: names the failed ones; sets `failed` and `there`, the numbers of each.
count_outcomes() {
    local path
    failed=0 there=0
    for path in "${recordings[@]}"; do
        case "${state[$path]:-}" in
            failed) failed=$((failed + 1)) && say "failed: $path: ${reason[$path]}" ;;
            there) there=$((there + 1)) ;;
        esac
    done
}

# advise_on_failed: where the `failed` ones are listed.
advise_on_failed() {
    [ "$failed" -eq 0 ] || say "the failed ones are in $output/failed.tsv; --retry tries them again"
}

write_failures() {
    local path
    for path in "${recordings[@]}"; do
        [ "${state[$path]:-}" != failed ] || printf '%s\t%s\n' "$path" "${reason[$path]}"
    done > "$work/failed.tsv" && mv -fT "$work/failed.tsv" "$output/failed.tsv"
}
