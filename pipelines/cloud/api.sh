# Sourced by hark lambda: the clock, the key, and requests to Lambda's cloud API.
# shellcheck shell=bash disable=SC2154,SC2034

url="${HARK_LAMBDA_URL:-https://cloud.lambda.ai/api/v1}"
key="" # of the account; never an argument of a program, never in a file
readonly request_ms=1050 launch_ms=12100 # between two requests, two launches: Lambda's limits
readonly request_tries=8
readonly not_lambdas="the answer is not one of Lambda's API"

# HARK_LAMBDA_CLOCK="START SPEED" is for tests: since START, in Unix time, all seconds are SPEED
# times as short.
read -r clock_start clock_speed <<< "${HARK_LAMBDA_CLOCK:-0 1}"

# set_now: `now` in seconds of Unix time, `now_ms` in milliseconds.
set_now() {
    local us="${EPOCHREALTIME/[.,]/}"
    now_ms=$((clock_start * 1000 + (us - clock_start * 1000000) * clock_speed / 1000))
    now=$((now_ms / 1000))
}

# real_seconds MS: sets `seconds` to what sleep takes for so long a time of that clock.
real_seconds() {
    local us=$(($1 * 1000 / clock_speed))
    printf -v seconds '%d.%06d' $((us / 1000000)) $((us % 1000000))
}

# pause SECONDS: a signal's trap runs at once, not at its end.
pause() {
    [ -z "$is_worker" ] || has_parent || exit 1
    pause_ms $(($1 * 1000))
}

# has_parent: the command that began this worker still runs.
has_parent() {
    local me="$BASHPID"
    [ "$(ps -o ppid= -p "$me" | tr -d ' ')" = "$$" ]
}

pause_ms() {
    local seconds
    real_seconds "$1"
    sleep "$seconds" &
    wait "$!"
}

# set_seconds DURATION FLAG: sets `seconds` to what 90s, 30m, 2h or 3d are.
set_seconds() {
    [[ "$1" =~ ^([0-9]{1,6})([smhd])$ ]] ||
        wrong "$2: expected a time such as 90s, 30m, 2h or 3d, got '$1'"
    local -A unit=([s]=1 [m]=60 [h]=3600 [d]=86400)
    seconds=$((10#${BASH_REMATCH[1]} * ${unit[${BASH_REMATCH[2]}]}))
}

# set_cents DOLLARS FLAG: sets `cents`.
set_cents() {
    [[ "$1" =~ ^([0-9]{1,7})(\.([0-9]{1,2}))?$ ]] || wrong "$2: expected dollars such as 4.50, got '$1'"
    local fraction="${BASH_REMATCH[3]}00"
    cents=$((10#${BASH_REMATCH[1]} * 100 + 10#${fraction:0:2}))
    [ "$cents" -gt 0 ] || wrong "$2: expected more than 0 dollars"
}

# dollars CENTS: "1.29"
dollars() { printf '%d.%02d' $(($1 / 100)) $(($1 % 100)); }

# read_lambda_key FILE: sets `key` to LAMBDA_API_KEY, or to what the file has: the key alone, or a
# line "api_key = KEY".
read_lambda_key() {
    local line
    key="${LAMBDA_API_KEY:-}"
    export -n LAMBDA_API_KEY
    if [ -z "$key" ]; then
        [ -r "$1" ] || die "$1: cannot read this file, which should have the key of Lambda's API;" \
            "make one in the console under API keys, or set LAMBDA_API_KEY"
        while [ -z "$key" ] && { IFS= read -r line || [ -n "$line" ]; }; do
            line="${line%$'\r'}"
            [[ ! "$line" =~ ^(api_key[[:space:]]*=[[:space:]]*)?([^[:space:]#=]+)[[:space:]]*$ ]] ||
                key="${BASH_REMATCH[2]}"
        done < "$1"
    fi
    [[ "$key" =~ ^[A-Za-z0-9_.:-]+$ ]] ||
        die "the key of Lambda's API is empty or has other characters than letters, digits, _ . : -"
}

# pace REQUEST: waits until Lambda's limits permit a request, or a launch. All processes of this user
# share the limits, so the times of the last ones are in a file, which is locked.
pace() {
    local gate last=0 last_launch=0 wait
    exec {gate}>> "$store/pace"
    flock "$gate"
    read -r last last_launch < "$store/pace" || true
    set_now
    wait=$((${last:-0} + request_ms - now_ms))
    [ "$1" != launch ] || [ $((${last_launch:-0} + launch_ms - now_ms)) -le "$wait" ] ||
        wait=$((last_launch + launch_ms - now_ms))
    # Times in the future are those of another clock.
    [ "$wait" -le 0 ] || [ "$wait" -gt "$launch_ms" ] || pause_ms "$wait"
    set_now
    [ "$1" != launch ] || last_launch="$now_ms"
    echo "$now_ms ${last_launch:-0}" > "$store/pace"
    exec {gate}>&-
}

# request METHOD PATH [BODY]: sets `outcome`:
#   ok       `answer` is the whole JSON text, which has "data"
#   refused  nothing was done: `code` and `problem` are the error's
#   busy     nothing was done (429): `retry_after` in seconds, or 0
#   lost     it may have been done: no answer, half of one, or an error of the server's own
request() {
    local head="$work/head.$BASHPID" said="$work/said.$BASHPID" body=() http
    [ -z "${3:-}" ] || body=(--data-binary "$3" --header 'Content-Type: application/json')
    : > "$head"
    code="" problem="" retry_after=0 outcome=lost
    answer="$(curl -q -sS --globoff --connect-timeout 15 --max-time 40 --request "$1" \
        --config <(printf 'header = "Authorization: Bearer %s"\n' "$key") \
        --dump-header "$head" "${body[@]}" "$url$2" 2> "$said")" || {
        problem="$(head -n 1 "$said")"
        problem="no answer: ${problem#curl: (*) }"
        return
    }
    http="$(awk '/^HTTP\// { status = $2 } END { print status }' "$head")"
    if [ "$http" = 200 ] && jq -e 'type == "object" and has("data")' > /dev/null 2>&1 <<< "$answer"; then
        outcome=ok
        return
    fi
    code="$(jq -r '.error.code | strings' 2> /dev/null <<< "$answer")"
    problem="$(jq -r '[.error.message, .error.suggestion] | map(strings) | join(" ")' \
        2> /dev/null <<< "$answer")"
    problem="${problem:-$not_lambdas} (status $http${code:+, $code})"
    case "$http/$code" in
        429/*)
            outcome=busy
            retry_after="$(awk -F ': *' 'tolower($1) == "retry-after" { print int($2) }' "$head")"
            retry_after="${retry_after:-0}"
            ;;
        409/* | 4??/provider/* | 4??/) ;; # outages, and answers of something between
        4??/*) outcome=refused ;;
    esac
}

# ask METHOD PATH [BODY]: repeats a request that may be repeated until it is answered. Returns 1 if it
# is refused, 2 if it has no answer after eight tries.
ask() {
    local tries delay=1
    for ((tries = 1; tries <= request_tries; tries++)); do
        pace request
        request "$@"
        case "$outcome" in
            ok) return 0 ;;
            refused) return 1 ;;
        esac
        [ "$tries" -lt "$request_tries" ] || break
        pause $((retry_after > delay ? retry_after : delay))
        delay=$((delay < 60 ? 2 * delay : 60))
    done
    return 2
}

# must_ask METHOD PATH [BODY]: the same, and ends the command without an answer.
must_ask() { ask "$@" || die_of_problem; }

die_of_problem() {
    [ "$code" != global/invalid-api-key ] ||
        die "Lambda does not take the key; give --api-key-file FILE or LAMBDA_API_KEY: $problem"
    die "$url: $problem"
}
