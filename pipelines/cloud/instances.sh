# Sourced by hark lambda: types, launches, ends and costs of instances. An instance of hark is called
# hark-RUN-tSTART-N: Lambda keeps no time of its start, and answers that are lost are found by name.
# shellcheck shell=bash disable=SC2154,SC2034

readonly image_family=lambda-stack-24-04 # 22.04, Lambda's default, is too old for CUDA 13 and FFmpeg 6
readonly no_rulesets=us-south-1          # the region whose instances take no firewall rules
readonly find_tries=6                    # looks, ten seconds apart, for a launch whose answer was lost
readonly end_tries=5                     # requests to terminate
numbers=0                                # of launches of this process, which make names differ

# set_types: sets `types`, lines of name, cents per hour, GPUs, aarch64 or x86_64, GPU, memory of the
# host in GiB, and the regions that have one, with commas (- if none); the cheapest first.
set_types() {
    must_ask GET /instance-types
    types="$(jq -r '.data[] | [.instance_type.name, .instance_type.price_cents_per_hour,
            .instance_type.specs.gpus,
            (if .instance_type.description + .instance_type.gpu_description | test("GH200|GB200")
                then "aarch64" else "x86_64" end),
            .instance_type.gpu_description, .instance_type.specs.memory_gib,
            ([.regions_with_capacity_available[].name] | join(",") | if . == "" then "-" else . end)]
        | @tsv' <<< "$answer" | sort -t $'\t' -k 2,2n -k 1,1)" && [ -n "$types" ] ||
        die "$url: the list of instance types is not as expected"
}

# show_types: as a table for people.
show_types() {
    set_types
    awk -F '\t' 'BEGIN { print "TYPE\t$/HOUR\tGPUS\tGPU\tHOST GIB\tREGIONS WITH CAPACITY" }
        { printf "%s\t%.2f\t%s\t%s\t%s\t%s\n", $1, $2 / 100, $3, $5, $6, $7 }' <<< "$types" |
        column -t -s $'\t'
}

# set_candidates: sets `candidates`, lines of type, cents, GPUs, region: what --type, --region,
# --max-price and the package permit, in the order of --type. With one named region a type that
# lists no capacity is tried too: the list is a hint.
set_candidates() {
    local name
    candidates="$(for name in ${wanted_types//,/ }; do
        awk -F '\t' -v name="$name" -v region="$region" -v most="${max_cents:-0}" -v built="$built" '
            (name == "any" ? $3 > 0 : $1 == name) && (!most || $2 <= most) && (built == "" || $4 == built) {
                n = split($7, regions, ",")
                if (region != "any") { n = 1; regions[1] = region }
                for (i = 1; i <= n; ++i) if (regions[i] != "-") print $1 "\t" $2 "\t" $3 "\t" regions[i]
            }' <<< "$types"
    done)"
}

# check_types: the wanted types exist, fit the package and cost no more than --max-price. Sets
# `dearest`, cents per hour of the dearest of them.
check_types() {
    local name row found=""
    dearest=0
    for name in ${wanted_types//,/ }; do
        row="$(awk -F '\t' -v name="$name" -v built="$built" '
            (name == "any" && $3 > 0 || $1 == name) { print $2 "\t" (built == "" || $4 == built) }' \
            <<< "$types")"
        [ -n "$row" ] || die "--type $name: Lambda has no such type; see $script types"
        while IFS=$'\t' read -r cents fits; do
            [ "$fits" = 1 ] && { [ -z "$max_cents" ] || [ "$cents" -le "$max_cents" ]; } || continue
            found=yes
            [ "$cents" -le "$dearest" ] || dearest="$cents"
        done <<< "$row"
    done
    [ -n "$found" ] || die "--type $wanted_types: none costs at most \$$(dollars "${max_cents:-0}") per" \
        "hour and runs the package${built:+, which is for $built}; see $script types"
}

# set_instances PREFIX: sets `instances`, lines of id, name, status, ip, region, type, cents per hour,
# start; - where Lambda has none. Those that are terminated are left out.
set_instances() {
    ask GET /instances || return
    instances="$(jq -r --arg prefix "$1" '.data[] | select(.status != "terminated")
        | select(.name // "" | startswith($prefix))
        | [.id, (.name // "-"), .status, (.ip // "-"), .region.name, .instance_type.name,
            .instance_type.price_cents_per_hour, (.name // "" | capture("-t(?<t>[0-9]+)-[0-9]+$").t // "-")]
        | @tsv' <<< "$answer")" || { problem="the list of instances is not as expected" && return 2; }
}

# start_of NAME: the time in an instance's name.
start_of() { sed -n 's/.*-t\([0-9]*\)-[0-9]*$/\1/p' <<< "$1"; }

# note_up ID NAME CENTS, note_down ID: a line of the ledger each: time, up or down, and of those that
# come up id, name, cents per hour.
note_up() { printf '%s\tup\t%s\t%s\t%s\n' "$(start_of "$2")" "$1" "$2" "$3" >> "$store/ledger.tsv"; }
note_down() {
    set_now
    printf '%s\tdown\t%s\n' "$now" "$1" >> "$store/ledger.tsv"
}

# set_spent PREFIX: sets `spent`, cents of all instances of this prefix so far, from their launch on
# (Lambda begins with the health checks), and `rate`, cents per hour of those that run.
set_spent() {
    set_now
    touch "$store/ledger.tsv"
    read -r spent rate < <(awk -F '\t' -v prefix="$1" -v now="$now" '
        $2 == "up" && index($4, prefix) == 1 && !($3 in start) { start[$3] = $1; cents[$3] = $5 }
        $2 == "down" && !($3 in end) { end[$3] = $1 }
        END {
            for (id in start) {
                if (!(id in end)) rate += cents[id]
                spent += ((id in end ? end[id] : now) - start[id]) * cents[id] / 3600
            }
            printf "%d %d\n", spent + 0.999, rate
        }' "$store/ledger.tsv")
}

# open_in_ledger PREFIX: prints the ids of this prefix that came up and have not ended.
open_in_ledger() {
    awk -F '\t' -v prefix="$1" '$2 == "up" && index($4, prefix) == 1 { open[$3] }
        $2 == "down" { delete open[$3] } END { for (id in open) print id }' "$store/ledger.tsv"
}

# compare_ledger PREFIX: after set_instances, what runs is in the ledger and what ended is out of it.
compare_ledger() {
    local id name status cents
    touch "$store/ledger.tsv"
    while IFS=$'\t' read -r id name status _ _ _ cents _; do
        [ -z "$id" ] || grep -q $'\tup\t'"$id"$'\t' "$store/ledger.tsv" || note_up "$id" "$name" "$cents"
    done <<< "$instances"
    while IFS= read -r id; do
        grep -q "^$id"$'\t' <<< "$instances" || note_down "$id"
    done < <(open_in_ledger "$1")
}

# find_by_name NAME: sets `id` to that of the instance of this name. A second one is terminated.
# Returns 1 if there is none.
find_by_name() {
    local found
    id=""
    set_instances "$1" || die_of_problem
    mapfile -t found < <(awk -F '\t' -v name="$1" '$2 == name { print $1 }' <<< "$instances")
    [ ${#found[@]} -gt 0 ] || return 1
    id="${found[0]}"
    [ ${#found[@]} -eq 1 ] || terminate "${found[@]:1}" || true
}

# launch_body NAME TYPE REGION: what POST /instance-operations/launch takes.
launch_body() {
    jq -cn --arg name "$1" --arg type "$2" --arg region "$3" --arg key "$ssh_key" --arg run "$run" \
        --arg start "$now" --arg family "$image_family" --arg ruleset "$ruleset" --arg disk "$filesystem" '
        {name: $name, instance_type_name: $type, region_name: $region, ssh_key_names: [$key],
            image: {family: $family}, tags: [{key: "hark-run", value: $run}, {key: "hark-start", value: $start}]}
        + (if $ruleset == "" then {} else {firewall_rulesets: [{id: $ruleset}]} end)
        + (if $disk == "" then {} else {file_system_names: [$disk]} end)'
}

# launch_round: one try of each candidate. Sets `id`, `name` and `cents` of a new instance, or returns
# 1 if no region has one. A launch whose answer is lost is looked for by its name.
launch_round() {
    local type gpus place body
    set_types
    set_candidates
    while IFS=$'\t' read -r type cents gpus place <&3; do
        [ -n "$type" ] || continue
        set_ruleset "$place"
        set_now
        numbers=$((numbers + 1))
        name="hark-$run-t$now-$numbers"
        body="$(launch_body "$name" "$type" "$place")"
        launch "$body" || continue
        note_up "$id" "$name" "$cents"
        say "$name: launched, $type in $place, \$$(dollars "$cents") per hour"
        return 0
    done 3<<< "$candidates"
    return 1
}

# launch BODY: sets `id`, or returns 1 if there is no capacity, or nothing is known of the launch.
launch() {
    local tries delay=12
    for ((tries = 1; tries <= request_tries; tries++)); do
        pace launch
        request POST /instance-operations/launch "$1"
        case "$outcome" in
            ok)
                id="$(jq -r '.data.instance_ids[0] | strings' 2> /dev/null <<< "$answer")"
                [ -z "$id" ] || return 0
                find_lost && return 0
                ;;
            refused)
                [ "$code" != instance-operations/launch/insufficient-capacity ] || return 1
                die_of_problem
                ;;
            busy)
                pause $((retry_after > delay ? retry_after : delay))
                delay=$((delay < 100 ? 2 * delay : 200))
                continue
                ;;
            lost)
                say "$name: the launch has no answer ($problem); looking for it"
                find_lost && return 0
                ;;
        esac
        pause "$delay"
    done
    say "$name: not launched: $problem"
    return 1
}

# find_lost: looks for a launch whose answer was lost, for a minute: the list may be late.
find_lost() {
    local tries
    for ((tries = 1; tries <= find_tries; tries++)); do
        ! find_by_name "$name" || { say "$name: found, it was launched" && return 0; }
        pause 10
    done
    return 1
}

# terminate ID...: until none is in the list. Returns 1, and says it loudly, if one is left.
terminate() {
    local left=("$@") tries looks one status still
    for ((tries = 1; tries <= end_tries; tries++)); do
        for one in "${left[@]}"; do
            status="$(awk -F '\t' -v id="$one" '$1 == id { print $3 }' <<< "${listed:-}")"
            [ "$status" = terminating ] ||
                ask POST /instance-operations/terminate "{\"instance_ids\":[\"$one\"]}" || true
        done
        for ((looks = 1; looks <= 6; looks++)); do
            set_instances hark- || break
            listed="$instances" still=()
            for one in "${left[@]}"; do
                if grep -q "^$one"$'\t' <<< "$listed"; then still+=("$one"); else note_down "$one"; fi
            done
            left=("${still[@]}")
            [ ${#left[@]} -gt 0 ] || { listed="" && return 0; }
            pause 10
        done
    done
    shout "${left[@]}"
    return 1
}

# shout ID...: instances that could not be terminated.
shout() {
    local one
    say "########################################################################"
    for one in "$@"; do
        say "LEFT RUNNING AND BILLED: $one $(awk -F '\t' -v id="$one" '$3 == id && $2 == "up" {
            printf "%s, $%.2f per hour", $4, $5 / 100; exit }' "$store/ledger.tsv")"
    done
    say "terminate it: $script down ID, or at https://cloud.lambda.ai/instances ($problem)"
    say "########################################################################"
}
