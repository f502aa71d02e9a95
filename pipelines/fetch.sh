# Sourced by hark worker: the recordings of a shard become files of a folder.
# shellcheck shell=bash disable=SC2154

readonly fetches=8 # at a time

# fetch_shard MANIFEST FOLDER: recording 1, 2, ... becomes FOLDER/000001.ENDING and so on: a link, a copy
# of a tar's member, or a part that ffmpeg cuts. FOLDER.tsv lists those that cannot be fetched: path, tab,
# error. Files that exist stay. Returns 75 if it may be possible later.
fetch_shard() {
    local path offset duration member begin bytes number=0 file ending key status=0 pids=()
    mkdir -p "$2" "$2.from" && rm -f "$2"/*.part.* "$2.from"/*.part.* "$2.from"/*.error "$2"/*.error || return 1
    while IFS= read -r path; do
        is_remote "$path" || continue
        printf '%s\n' "$path"
    done < <(jq -r .audio_filepath "$1") | sort -u > "$2.from/list"
    while IFS= read -r path; do
        set_key "$path"
        set -m # a process group of its own, so that its curl ends with it
        fetch_remote "$path" "$2.from/$key" < /dev/null &
        set +m
        pids+=("$!")
        [ ${#pids[@]} -lt "$fetches" ] || { wait "${pids[0]}"; pids=("${pids[@]:1}"); }
    done < "$2.from/list"
    [ ${#pids[@]} -eq 0 ] || wait "${pids[@]}"
    : > "$2.tsv.part"
    while IFS= read -r path && IFS= read -r offset && IFS= read -r duration &&
        IFS= read -r member && IFS= read -r begin && IFS= read -r bytes; do
        number=$((number + 1))
        set_ending "${member:-$path}"
        printf -v file '%s/%06d%s' "$2" "$number" "${offset:+.wav}"
        [ -n "$offset" ] || file+="$ending"
        [ ! -e "$file" ] || continue
        key=""
        ! is_remote "$path" || set_key "$path"
        [ -z "$member" ] || set_key "$path $begin"
        place_recording "$path" "$offset" "$duration" "$file" "$2.from/$key" < /dev/null
        case $? in
            0) ;;
            75) status=75 ;;
            *) printf '%s\t%s\n' "$file" "$problem" >> "$2.tsv.part" ;;
        esac
    done < <(entries_of "$1")
    mv -f "$2.tsv.part" "$2.tsv" || return 1
    return "$status"
}

# entries_of MANIFEST: six lines per recording: path, offset or nothing, duration; member of a tar or nothing,
# and the bytes in the tar at which it begins and which it has.
entries_of() {
    jq -r '.audio_filepath, (.offset, .duration, .member, .member_offset, .member_bytes | . // "" | tostring)' "$1"
}

# is_remote PATH: a URL, or a colon comes before the first slash (rclone's rule).
is_remote() { [[ "${1%%/*}" == ?*:* ]]; }

# set_ending PATH: sets `ending` to ".mp3", or nothing.
set_ending() {
    local name="${1%%\?*}"
    ending=""
    [[ ! "$name" =~ \.[A-Za-z0-9]{1,5}$ ]] || ending="${BASH_REMATCH[0]}"
}

# set_key PATH: sets `key` to a name of its file.
set_key() { key="$(sha256sum <<< "$1" | cut -c 1-32)"; }

# fetch_remote PATH FILE: FILE.error says why it cannot be; its first word is never or later.
fetch_remote() {
    local part="$2.part.$BASHPID" said status=0 code from="$1"
    [ ! -e "$2" ] || return 0
    # A bucket of Amazon's, or of RCLONE_S3_ENDPOINT's, with the keys that Amazon's own programs use.
    [[ "$from" != s3://* ]] || from=":s3,env_auth:${from#s3://}"
    if [[ "$from" == *://* ]]; then
        said="$(curl -sS -L --fail --retry 3 --connect-timeout 30 --speed-limit 1 --speed-time 120 \
            -w '\n%{http_code}' -o "$part" -- "$1" 2>&1)" || status=$?
        code="${said##*$'\n'}"
        # Statuses 400 to 499 say that the server does not have it, except for time-outs (408) and too
        # many requests (429). 37: no such file, of file://. 1 and 3: not a URL of curl's.
        [[ ! "$status" =~ ^(1|3|37)$ ]] && { [ "$status" -ne 22 ] || [[ ! "$code" == 4?? || "$code" == 408 || "$code" == 429 ]]; } ||
            status=never
    else
        # Its ten retries within each try take minutes if nothing answers.
        said="$(rclone copyto --retries 3 --retries-sleep 2s --low-level-retries 2 -q -- "$from" "$part" 2>&1)" ||
            status=$?
        # rclone's exit statuses of a folder and of a file that are not found. A folder is copied whole.
        [ "$status" != 3 ] && [ "$status" != 4 ] || status=never
        [ ! -d "$part" ] || { status=never said="it is a folder" && rm -rf "$part"; }
        # S3 says so of what is not there too, to those who may not list the bucket.
        [[ "$said" != *AccessDenied* ]] || said="access denied: the keys do not allow to read it, or it is not" \
            said+=" there: without s3:ListBucket S3 does not say which"
    fi
    if [ "$status" = 0 ]; then
        # Older than every transcript of it: hark batch would do it again.
        touch -d @0 "$part" && mv -fT "$part" "$2"
        return
    fi
    rm -f "$part"
    [ "$status" = never ] || status=later
    echo "$status cannot fetch: $(head -n 1 <<< "$said" | tr '\t' ' ')" > "$2.error"
}

# place_recording PATH OFFSET DURATION FILE FETCHED: makes FILE, of the member `member` if that is set. Else
# returns 75 or, with `problem`, 1.
place_recording() {
    local from="$1" kind
    if is_remote "$1"; then
        from="$5"
        [ -e "$from" ] || {
            read -r kind problem < "$from.error" || { kind=later problem="cannot fetch"; }
            [ "$kind" = never ] && return 1
            say "$1: $problem"
            return 75
        }
    elif [ ! -f "$1" ]; then
        problem="no such file"
        [ -d "${1%/*}" ] && return 1
        say "$1: its folder is not there"
        return 75
    fi
    if [ -n "$member" ]; then
        # A member that is whole needs no second copy.
        [ -n "$2" ] && from="$5" || from="$4"
        take_member "$1" "$from" || return
        [ -n "$2" ] || return 0
    elif [ -z "$2" ]; then
        ln -sfnT -- "$from" "$4"
        return
    fi
    problem="$(ffmpeg -v error -nostdin -ss "$2" -i "file:$from" -t "$3" -vn -c:a pcm_f32le -f wav \
        -y "file:$4.part.wav" 2>&1)" && touch -d @0 "$4.part.wav" && mv -fT "$4.part.wav" "$4" && return
    rm -f "$4.part.wav"
    problem="cannot cut: $(head -n 1 <<< "$problem" | tr '\t' ' ')"
    return 1
}

# take_member TAR FILE: copies the member's bytes. Else returns 1, with `problem`.
take_member() {
    local part="$2.part.$BASHPID"
    [ ! -e "$2" ] || return 0
    problem="$(dd if="$1" of="$part" bs=1M iflag=skip_bytes,count_bytes skip="$begin" count="$bytes" \
        status=none 2>&1)" && [ "$(stat -c %s "$part")" = "$bytes" ] && touch -d @0 "$part" &&
        mv -fT "$part" "$2" && return
    rm -f "$part"
    problem="cannot read $member of this tar${problem:+: $(head -n 1 <<< "$problem" | tr '\t' ' ')}"
    return 1
}
