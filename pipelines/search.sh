#!/usr/bin/env bash
# Usage: hark search [OPTION]... FOLDER WORD...
# Finds what was said: the lines of a folder's transcripts that fit best.
#
# Reads .srt, .vtt, .tsv and .txt files in FOLDER and its folders; of those
# that differ in the ending alone, the first of these. Prints file, time and
# line with tabs between, the best first. Without --model a line fits by its
# words, whatever their case: rare words count more (BM25). With --model it
# fits by its meaning: gpt-embed makes vectors of the lines, which are kept in
# FOLDER/.hark/search and made again if a transcript has changed. Nothing found
# is exit status 1.
#
# Options:
#   -m, --model MODEL    embedding model: a name or a path
#       --matches N      matches to write, at most [10]
#       --device DEVICE  auto, cpu, cuda or cuda:N [auto]
#   -t, --threads N      CPU threads; 0: all cores [0]
#   -h, --help           print a short help and exit
#
# Examples:
#   hark search meetings 'new cars'
#   hark search meetings 'Who fixes the roof?' --model ./Qwen3-Embedding
#   hark search minutes budget --matches 1 | cut -f 1
set -uo pipefail
#   FOLDER -> passages (file, seconds, line) -> by_words or by_meaning -> numbers of passages
script="hark search"
here="$(dirname "${BASH_SOURCE[0]}")"
. "$here/flags.sh"
. "$here/help.sh"
help_if_asked "$@"
find_tools
export LC_ALL=C.UTF-8

model="" matches=10 folder="" question=""
embedder=(gpt-embed --truncate) # and its options

parse() {
    local arguments=()
    learn_own_flags --model -m --matches --device --threads -t
    flag_name[-m]=--model flag_name[-t]=--threads
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            --) shift && arguments+=("$@") && break ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                [ -n "$value" ] || wrong "$flag: expected a value"
                case "$flag" in
                    --model) model="$value" && embedder+=(--model "$value") ;;
                    --matches) matches="$value" ;;
                    *) embedder+=("$flag" "$value") ;;
                esac
                ;;
            *) arguments+=("$1") ;;
        esac
        shift
    done
    [ ${#arguments[@]} -ge 2 ] || wrong "expected a folder and words, got $(counted ${#arguments[@]} argument)"
    [[ "$matches" =~ ^[1-9][0-9]{0,5}$ ]] || wrong "--matches: expected 1 to 999999, got '$matches'"
    folder="${arguments[0]}" question="${arguments[*]:1}"
    question="${question//[$'\n\r\t']/ }"
    [[ "$folder" != -* ]] || folder="./$folder" # no expression of find
    [ -d "$folder" ] || die "$folder: expected a folder of transcripts"
    [ -r "$folder" ] && [ -x "$folder" ] || die "$folder: this folder cannot be read"
    [[ "$question" == *[[:alnum:]]* ]] || wrong "expected words to search for"
}

# name_unreadable: says which folders in it cannot be read; returns 1 if there are any.
name_unreadable() {
    local path status=0
    while IFS= read -r -d '' path; do
        say "$path: this folder cannot be read"
        status=1
    done < <(find -H "$folder" -type d \( ! -readable -o ! -executable \) -prune -print0)
    return "$status"
}

# list_transcripts: their paths within the folder, a line each, sorted; one of each name.
list_transcripts() {
    local ending
    for ending in srt vtt tsv txt; do
        find -H "$folder" -type d \( ! -readable -o ! -executable \) -prune -o \
            ! -path '*/.hark*/*' ! -name '*.audacity.txt' ! -path $'*[\n\t]*' \
            -iname "*.$ending" -xtype f -printf '%P\n'
    done | awk '{ stem = $0; sub(/\.[^.\/]*$/, "", stem) } !(stem in known) { known[stem]; print }' |
        sort
}

# passages: a line per line of a transcript: file, seconds (or -), text.
passages() {
    (
        cd -- "$folder" || exit
        # With ./ no path is an assignment for awk.
        sed 's|^|./|' | tr '\n' '\0' | xargs -0r awk '
        function seconds(time,  part, n) {
            gsub(",", ".", time)
            n = split(time, part, ":")
            return part[n] + 60 * part[n - 1] + (n > 2 ? 3600 * part[n - 2] : 0)
        }
        function put(  text) {
            text = line
            gsub(/<[^>]*>/, "", text)
            gsub(/[ \t\r]+/, " ", text)
            gsub(/^ | $/, "", text)
            if (text != "") print substr(file, 3) "\t" start "\t" text
            line = ""
        }
        FNR == 1 {
            put()
            file = FILENAME
            sub(/^\357\273\277/, "")
            kind = tolower(file)
            sub(/.*\./, "", kind)
            start = "-"
            in_cue = 0
        }
        { sub(/\r$/, "") }
        kind == "txt" { line = $0; put(); next }
        kind == "tsv" {
            if (FNR > 1 && split($0, field, "\t") >= 3) {
                start = field[1] / 1000
                line = field[3]
                put()
            }
            next
        }
        / --> / { put(); split($0, field, " --> "); start = seconds(field[1]); in_cue = 1; next }
        $0 == "" { put(); in_cue = 0; next }
        in_cue { line = line " " $0 }
        END { put() }' /dev/null
    )
}

# plain_words: each line in lower case, its words with a space between.
plain_words() { sed 's/.*/\L&/; s/[^[:alnum:]]\+/ /g; s/^ //; s/ $//'; }

# by_words: the numbers of the best passages, from 1. Source: Robertson and Zaragoza 2009, "The
# Probabilistic Relevance Framework: BM25 and Beyond"; k1 1.2, b 0.75.
by_words() {
    cut -f 3 "$work/passages" | plain_words > "$work/words"
    QUESTION="$(printf '%s\n' "$question" | plain_words)" awk '
        BEGIN { n = split(ENVIRON["QUESTION"], asked, " "); for (i = 1; i <= n; ++i) wanted[asked[i]] }
        function count(  i) { delete here; for (i = 1; i <= NF; ++i) if ($i in wanted) ++here[$i] }
        FNR == NR { count(); for (word in here) ++lines[word]; total += NF; ++all; next }
        {
            count()
            score = 0
            for (word in here) {
                rare = log(1 + (all - lines[word] + 0.5) / (lines[word] + 0.5))
                score += rare * here[word] * 2.2 / (here[word] + 1.2 * (0.25 + 0.75 * NF * all / total))
            }
            if (score > 0) printf "%.9g\t%d\n", score, FNR
        }' "$work/words" "$work/words" | sort -k 1,1gr -k 2,2n | sed -n "1,${matches}p" | cut -f 2
}

# by_meaning: the same by the vectors that are closest to that of the question.
by_meaning() {
    keep_vectors || return
    cut -f 1 "$work/passages" | uniq > "$work/files"
    printf '%s\n' "$question" | "${embedder[@]}" --input-format lines --matches "$matches" \
        --format tsv --nearest <(cd -- "$store" && sed 's/$/.f32/' "$work/files" |
            tr '\n' '\0' | xargs -0r cat --) > "$work/nearest" || return
    awk -F '\t' '{ print $2 + 1 }' "$work/nearest"
}

# keep_vectors: makes the vectors of all transcripts whose passages are not those that are kept.
keep_vectors() {
    local file rows width
    store="$folder/.hark/search/$(printf '%s' "$model" | tr -c 'A-Za-z0-9._-' _)"
    make_folder "$store" || return
    [ -w "$store" ] || die "$store: cannot write into this folder, where the vectors are kept"
    store="$(realpath -- "$store")" || return
    exec {lock}> "$store/lock" && flock "$lock" || return
    mkdir "$work/new" && : > "$work/stale" || return
    (cd "$work/new" && awk -F '\t' '
        $1 != last { close(out); last = $1; out = ++n ".passages"; print last > "files" }
        { print > out }' "$work/passages") || return
    local number=0
    while IFS= read -r file; do
        number=$((number + 1))
        [ -f "$store/$file.f32" ] && cmp -s "$work/new/$number.passages" "$store/$file.passages" ||
            printf '%s\t%s\n' "$number" "$file" >> "$work/stale"
    done < "$work/new/files"
    [ -s "$work/stale" ] || return 0
    while IFS=$'\t' read -r number file; do cut -f 3 "$work/new/$number.passages"; done \
        < "$work/stale" > "$work/texts"
    "${embedder[@]}" --input-format lines --format f32 < "$work/texts" > "$work/f32" || return
    rows="$(wc -l < "$work/texts")"
    width=$(($(stat -c %s "$work/f32") / rows))
    while IFS=$'\t' read -r number file <&3; do
        # While it has new vectors for old passages, it has no passages.
        mkdir -p "$(dirname -- "$store/$file")" && rm -f -- "$store/$file.passages" &&
            head -c "$((width * $(wc -l < "$work/new/$number.passages")))" > "$store/$file.f32.part" &&
            mv -fT -- "$store/$file.f32.part" "$store/$file.f32" &&
            cp -- "$work/new/$number.passages" "$store/$file.passages" || return
    done < "$work/f32" 3< "$work/stale"
}

# show: the passages of these numbers, in their order.
show() {
    FOLDER="${folder%/}/" awk -F '\t' '
        FNR == NR { place[$1] = FNR; last = FNR; next }
        FNR in place {
            time = $2
            if (time != "-") time = sprintf("%d:%02d:%02d", time / 3600, time % 3600 / 60, time % 60)
            line[place[FNR]] = ENVIRON["FOLDER"] $1 "\t" time "\t" $3
        }
        END { for (i = 1; i <= last; ++i) print line[i] }' "$work/numbers" "$work/passages"
}

parse "$@"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
name_unreadable
whole=$?
list_transcripts | passages > "$work/passages" || die "$folder: cannot read its transcripts"
[ -s "$work/passages" ] || die "$folder: found no transcripts; hark transcribe $folder makes them"
if [ -n "$model" ]; then
    by_meaning > "$work/numbers" || exit
else
    by_words > "$work/numbers" || exit
fi
[ -s "$work/numbers" ] || exit 1
show 2> "$work/errors" || {
    status=$?
    [ "$status" -gt 128 ] || die "stdout: cannot write"
    exit "$status"
}
exit "$whole"
