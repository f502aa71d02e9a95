# Sourced by the commands that work on shards of hark-shard plan: their common options, what is to be
# done, and what that costs. The commands set `script`. `shards` and `output` are the folders of the
# plan and of the results, `job_options` options of hark batch.
# shellcheck shell=bash disable=SC2034,SC2154

shards="" output="" only="" stale=600 scratch="" price="" speed="" dry_run=""
job_options=()  # --flag=value or --flag, in the given order
key_options=()  # those of them that may change a transcript
job_model=""

# learn_shard_flags FLAG...: take_flag knows the flags that these commands share, and a command's own,
# which take a value.
learn_shard_flags() {
    learn_own_flags --shards --output-dir -o --only --stale --scratch --price --speed "$@"
    flag_name[-o]=--output-dir flag_name[--dry-run]=--dry-run
}

# take_shard_option: sets what take_flag has found. Returns 1 if it is a command's own.
take_shard_option() {
    [ -n "${flag_value[$flag]:-}" ] || [[ "${words[0]}" != *=* ]] ||
        wrong "$flag: expected no value, got '$value'"
    [ -z "${flag_value[$flag]:-}" ] || [ -n "$value" ] || wrong "$flag: expected a value"
    case "$flag" in
        --shards) shards="${value%/}" ;;
        --output-dir) output="${value%/}" ;;
        --only) only="$value" ;;
        --stale) stale="$value" ;;
        --scratch) scratch="${value%/}" ;;
        --price) price="$value" ;;
        --speed) speed="$value" ;;
        --dry-run) dry_run=yes ;;
        *) return 1 ;;
    esac
}

# parse_shard_options WORD...: what learn_shard_flags knows, and after -- options of hark batch. The
# command's take_own_option sets what take_flag has found of its own.
parse_shard_options() {
    while [ $# -gt 0 ]; do
        case "$1" in
            --) shift && set_job_options "$@" && break ;;
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                take_shard_option || take_own_option
                ;;
            *) wrong "expected an option, got '$1'" ;;
        esac
        shift
    done
}

# worker_command OPTION...: the command of a hark worker of this plan, in the shell's words.
worker_command() {
    local worker="$here/worker"
    [ -x "$worker" ] || worker="$here/worker.sh"
    quoted "$worker" --shards "$shards" --output-dir "$output" --stale "$stale" \
        ${scratch:+--scratch "$scratch"} "$@"
}

# check_shard_options: folders become absolute paths.
check_shard_options() {
    [ -n "$shards" ] || wrong "--shards is required"
    [ -n "$output" ] || wrong "--output-dir is required"
    [[ "$stale" =~ ^[1-9][0-9]{0,5}$ ]] || wrong "--stale: expected seconds, 1 or more, got '$stale'"
    check_number "$price" --price "dollars per hour"
    check_number "$speed" --speed "times real time"
    [ -f "$shards/shards.tsv" ] || die "$shards: has no shards.tsv; make it by hark-shard plan"
    shards="$(realpath -- "$shards")" output="$(realpath -m -- "$output")"
    [ -z "$scratch" ] || scratch="$(realpath -m -- "$scratch")"
    local folder
    for folder in "$shards" "$output" "$scratch"; do # hark batch reads lists of paths in them
        [[ "$folder" != *[$'\t\r\n']* ]] ||
            die "${folder@Q}: expected a path without tab, carriage return and newline"
    done
}

# set_job_options WORD...: options of hark batch, in one form; paths that exist become absolute.
set_job_options() {
    local kind
    learn_flags whisper-transcribe audio-decode
    while [ $# -gt 0 ]; do
        [[ "$1" == -?* ]] || wrong "after --: expected an option of hark batch, got '$1'"
        take_flag "$@" || wrong "after --: hark batch has no option '$1'"
        shift ${#words[@]}
        case "$flag" in
            --output-dir | --output-name | --format | --summary | --live | --overwrite | --shards | \
                --only | --stale | --scratch | --price | --speed | --dry-run | --split-channels)
                wrong "after --: $flag is not an option of a shard" ;;
        esac
        kind="${flag_completes[$flag]:-}"
        [[ ! "$kind" =~ (file|directory|model)$ ]] || [ ! -e "$value" ] || value="$(realpath -- "$value")"
        [ -z "${flag_value[$flag]:-}" ] && job_options+=("$flag") || job_options+=("$flag=$value")
        case "$flag" in
            --model) job_model="$value" ;;
            --threads | --jobs | --progress | --quiet | --verbose | --no-quiet | --no-verbose) ;;
            *) key_options+=("${job_options[-1]}") ;;
        esac
    done
}

# list_shards: sets `todo`, the names of the shards without a result, the longest first, and the numbers
# `planned` of all and `todo_recordings`, `todo_hours` of those; the last is - if it is not known.
list_shards() {
    local name recordings hours
    todo=() planned=0 todo_recordings=0 todo_hours=0
    while IFS=$'\t' read -r name recordings hours _; do
        [ -z "$only" ] || [[ ",$only," == *",$name,"* ]] || continue
        planned=$((planned + 1))
        [ ! -e "$output/$name.done" ] || continue
        todo+=("$name")
        todo_recordings=$((todo_recordings + recordings))
        todo_hours+=" $hours"
    done < <(tail -n +2 "$shards/shards.tsv" | LC_ALL=C sort -t $'\t' -k 3,3nr -k 2,2nr -k 1,1)
    [ "$planned" -gt 0 ] || die "$shards: has no shard${only:+ of --only $only}"
    todo_hours="$(tr ' ' '\n' <<< "$todo_hours" |
        awk '$1 == "-" { unknown = 1 } { sum += $1 } END { print unknown ? "-" : sum }')"
}

# say_cost MACHINES: what is to be done, and how long it takes, in all and on MACHINES.
say_cost() {
    local known="--speed" done_files=()
    mapfile -t done_files < <(find "$output" -maxdepth 1 -name '*.done' 2> /dev/null)
    if [ -z "$speed" ] && [ ${#done_files[@]} -gt 0 ]; then
        known="as the shards that are done"
        speed="$(printf '%s\0' "${done_files[@]}" | xargs -0 cat | jq -rs '
            (map(.wall_seconds) | add) as $s | if $s > 0 then (map(.hours) | add) * 3600 / $s else "" end')"
    fi
    say "$(awk -v todo=${#todo[@]} -v planned="$planned" -v recordings="$todo_recordings" -v hours="$todo_hours" \
        -v speed="$speed" -v price="$price" -v machines="$1" -v known="$known" 'BEGIN {
            printf "%d of %d shards to do: %d recording%s", todo, planned, recordings, recordings == 1 ? "" : "s"
            if (hours == "-") { printf ", hours not known"; exit }
            printf ", %.4g h of audio", hours
            if (speed == "" || todo == 0) { if (todo) printf "; --speed X tells the time it takes"; exit }
            work = hours / speed
            printf "; %.3g machine hours at %.4g x real time (%s)", work, speed, known
            if (machines > todo) machines = todo
            if (machines > 1) printf ", %.3g h on %d machines", work / machines, machines
            if (price != "") printf ", $%.2f", work * price
        }')"
}
