# Sourced by the commands that can ask a running hark-serve in place of their pipe, after
# recordings.sh, flags.sh and help.sh.
# shellcheck shell=bash disable=SC2154,SC2034

server=""   # http://HOST:PORT or unix:PATH; empty: the pipe runs here
key_file="" # of --api-key-file
key=""      # what the server wants to see
foreign_answer="the answer is not one of hark-serve"
given=()    # the flags of the command line: a long name, its value, and so on

learn_server_flags() { learn_own_flags --server --api-key-file; }

# note_flag: keeps what take_flag found. Returns 1 if the flag is not one of the two above.
note_flag() {
    given+=("$flag" "$value")
    case "$flag" in
        --server) set_server "$value" ;;
        --api-key-file)
            [ -n "$value" ] || wrong "$flag: expected a value"
            key_file="$value"
            ;;
        *) return 1 ;;
    esac
}

# set_server ADDRESS: as hark-serve prints it.
set_server() {
    local host='(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)'
    [[ "$1" =~ ^https?://$host(:[0-9]+)?/?$ || "$1" == unix:?* ]] ||
        wrong "--server: expected http://HOST:PORT or unix:PATH, got '$1'"
    server="$1"
    [[ "$1" == unix:* ]] || server="${1%/}"
}

# refuse_with_server FLAG: ends the command, because the server has nothing like it.
refuse_with_server() { wrong "$1: not an option with --server"; }

# is_local SERVER: whether it is on this machine. Requests to it never take a proxy.
is_local() { [[ "$1" =~ ^(unix:|https?://(127\.[0-9.]+|\[::1\]|localhost)(:[0-9]+)?$) ]]; }

# use_server: what asking it needs is there: programs, the key, and the folder `work`. HARK_OFFLINE
# allows a server of this machine.
use_server() {
    local program
    is_local "$server" || refuse_offline "$server"
    for program in curl jq; do
        command -v "$program" > /dev/null || die "--server needs $program, which is not installed"
    done
    read_key
    work="$(mktemp -d)" || exit 1
    trap 'rm -rf "$work"' EXIT
    end_on_signals
}

# read_key: sets `key` to the first one of the file, which is as --api-keys of hark-serve takes it,
# or to the variable's.
read_key() {
    local line
    key="${HARK_API_KEY:-}"
    export -n HARK_API_KEY
    if [ -n "$key_file" ]; then
        [ -r "$key_file" ] || die "$key_file: cannot read this file, which should have the key"
        key=""
        while [ -z "$key" ] && { IFS= read -r line || [ -n "$line" ]; }; do
            while [[ "$line" == *[\ $'\r'] ]]; do line="${line%?}"; done
            [[ "$line" == '#'* ]] || key="$line"
        done < "$key_file"
        [ -n "$key" ] || die "$key_file: no key; write one on a line of its own"
    fi
    [[ "$key" != *[[:cntrl:]]* ]] || die "the key has control bytes; expected text on one line"
}

# request PATH OPTION_OF_CURL...: the server's answer is in `work`/answer. Returns 1 if there is
# none, and sets `problem`. The key is not among the arguments, which others can see.
request() {
    local url="$server$1" socket=()
    [[ "$server" != unix:* ]] || socket=(--unix-socket "${server#unix:}") url="http://localhost$1"
    ! is_local "$server" || socket+=(--noproxy '*')
    shift
    : > "$work/answer"
    run_group curl -q -sS --globoff "${socket[@]}" -o "$work/answer" -w '%{http_code}' \
        -H @<([ -z "$key" ] || printf 'Authorization: Bearer %s\n' "$key") "$@" "$url" \
        > "$work/status" 2> "$work/errors"
    case $?/"$(< "$work/status")" in
        0/200) return 0 ;;
        0/401) problem="the key is missing or wrong; give --api-key-file FILE (status 401)" ;;
        0/*)
            problem="$(jq -r '.error.message | strings' "$work/answer" 2> /dev/null)"
            problem="${problem:-$foreign_answer} (status $(< "$work/status"))"
            ;;
        7/*) problem="cannot connect; is hark-serve running there?" ;;
        *)
            problem="$(head -n 1 "$work/errors")"
            problem="${problem#curl: (*) }"
            ;;
    esac
    return 1
}

# choose_model NAME FLAG ENDPOINT: sets `model` to the name, or if it is empty to that of the only
# model in the server's memory that answers at the endpoint.
choose_model() {
    local names loaded fits='select(.endpoints | index($path))'
    request /v1/models || die "$server: $problem"
    [ "$(jq -r '.data | type' "$work/answer" 2> /dev/null)" = array ] || die "$server: $foreign_answer"
    names="$(jq -r --arg path "$3" "[.data[] | $fits | .id] | join(\", \")" "$work/answer")"
    [ -n "$names" ] || die "$server: no model there answers at $3"
    loaded="$(jq -r --arg path "$3" "[.data[] | $fits | select(.loaded) | .id] | join(\", \")" "$work/answer")"
    model="${1:-$loaded}"
    [[ -n "$model" && ( -n "$1" || "$model" != *", "* ) ]] ||
        die "$server: expected $2 NAME, one of $names"
    [[ ", $names, " == *", $model, "* ]] || is_there "$model" "$3" ||
        die "$server: no model '$model' answers at $3; expected one of $names"
}

# is_there NAME ENDPOINT: whether the server has a model under a name that it does not list.
is_there() {
    request "/v1/models/$(jq -rn --arg name "$1" '$name | @uri')" &&
        jq -e --arg path "$2" '.endpoints | index($path)' "$work/answer" > /dev/null
}

# request_transcript INPUT TASK FIELD...: of a file or of standard input (-), as request answers.
# The fields are NAME=VALUE of the form.
request_transcript() {
    local input="$1" path="/v1/audio/$2" field form=()
    shift 2
    [ "$input" = - ] || { [ -r "$input" ] && [ ! -d "$input" ]; } || {
        problem="cannot read this recording"
        return 1
    }
    for field in "$@"; do form+=(--form-string "$field"); done
    # The file's name would need curl's quotes.
    if [ "$input" = - ]; then
        request "$path" "${form[@]}" -F file=@-
    else
        request "$path" "${form[@]}" -F file=@- < "$input"
    fi
}
