# Sourced by recordings.sh, for the commands that take --profile, --stats and --metrics of the tools
# of their pipe. They have flags.sh and help.sh too.
# shellcheck shell=bash disable=SC2154,SC2034

profile=""     # the trace of all tools; empty: none
has_profile="" # yes: begin_profile has begun it
metrics_dir="" # of files of the tools' metrics; empty: none

# note_measure NAME: takes the flag that take_flag found if it is one of these. A tool's part of the
# profile is FILE.TOOL; the others go to the array NAME, the options of the last tool.
note_measure() {
    local -n last="$1"
    case "$flag" in
        --profile)
            want_file
            profile="$value"
            [[ "$profile" != -* ]] || profile="./$profile"
            ;;
        --stats | --no-stats | --metrics) last+=("${words[@]}") ;;
        *) return 1 ;;
    esac
}

# want_file: the value of the flag names a file to write, and no device or pipe: a file that is made
# next to it would take its place.
want_file() {
    [ -n "$value" ] || wrong "$flag: expected a value"
    [ "$value" != - ] && { [ ! -e "$value" ] || [ -f "$value" ]; } ||
        wrong "$flag: expected a file, got '$value'"
}

# refuse_other_file FILE BEGINNING: ends the script if FILE is there and begins with something else.
refuse_other_file() {
    case "$(head -c ${#2} -- "$1" 2> /dev/null)" in
        "" | "$2") ;;
        *) die "$1: there is another kind of file of that name; it is not overwritten" ;;
    esac
}

# profile_parts: sets `parts` to the files of the tools, in the order of the pipe.
profile_parts() {
    local tool file
    parts=()
    for tool in audio-decode mel whisper-transcribe gpt-generate gpus; do
        for file in "$profile.$tool" "$profile.$tool".[0-9]*; do
            [ ! -e "$file" ] || parts+=("$file")
        done
    done
}

# begin_profile: what an earlier run has left under the same name goes.
begin_profile() {
    local parts file
    [ -n "$profile" ] || return 0
    profile_parts
    for file in "$profile" "${parts[@]}"; do refuse_other_file "$file" "["; done
    { : > "$profile"; } 2> /dev/null || die "$profile: cannot write"
    rm -f -- "${parts[@]}"
    has_profile=yes
}

# free_name FILE: sets `file` to it, or if it is there to FILE.2, FILE.3, ...
free_name() {
    local number=1
    file="$1"
    while [ -e "$file" ]; do
        number=$((number + 1)) file="$1.$number"
    done
}

# measured TOOL OPTION...: runs the tool; its part of the profile is FILE.TOOL, and of a further run
# of it FILE.TOOL.2.
measured() {
    local file options=()
    [ -z "$profile" ] || { free_name "$profile.$1" && options+=(--profile "$file"); }
    [ -z "$metrics_dir" ] || { free_name "$metrics_dir/$1" && options+=(--metrics "$file"); }
    "$1" "${options[@]}" "${@:2}"
}

# end_profile STATUS: one trace of all parts, on exit with that status. If it fails, 0 becomes 1.
end_profile() {
    local parts
    [ -n "$has_profile" ] || return 0
    profile_parts
    [ ${#parts[@]} -gt 0 ] || return 0
    hark-trace merge "${parts[@]}" > "$profile" && rm -f -- "${parts[@]}" && return
    [ "$1" -ne 0 ] || exit 1
}

# busy_tools: "mel 12%, whisper-transcribe 97%; whisper-transcribe bound the run, 81% in step", of
# the files in `metrics_dir`: shares of the longest tool's time in which the busiest thread did not wait.
busy_tools() {
    awk '
        function label(name,   text) {
            text = $0
            if (!sub(".*" name "=\"", "", text)) return ""
            sub("\".*", "", text)
            return text
        }
        /^#/ { next }
        { tool = label("tool") }
        /^hark_run_duration_seconds/ {
            if (!(tool in wall)) tools[++count] = tool
            wall[tool] += $NF
            if (wall[tool] > longest_wall) longest_wall = wall[tool]
        }
        /^hark_busiest_thread_seconds/ { busy[tool] += $NF }
        /^hark_run_seconds_total/ && label("stage") !~ /^wait[.]/ {
            all[tool] += $NF
            stages[tool, label("stage")] += $NF
        }
        END {
            for (i = 1; i <= count; ++i) {
                share = longest_wall > 0 ? busy[tools[i]] / longest_wall : 0
                text = text (i > 1 ? ", " : "") sprintf("%s %.0f%%", tools[i], 100 * share)
                if (share > most) { most = share; bound = tools[i] }
            }
            if (bound == "") exit
            for (key in stages) {
                split(key, part, SUBSEP)
                if (part[1] != bound || stages[key] <= longest) continue
                longest = stages[key]
                stage = part[2]
            }
            printf "%s; %s bound the run, %.0f%% in %s\n", text, bound,
                100 * longest / all[bound], stage
        }' "$metrics_dir"/*
}

# energy_of GPUS SECONDS: the joules of all GPUs in these lines of hark-trace summary, and those per
# hour of that many seconds of audio.
energy_of() {
    awk -v seconds="$2" '
        { joules += $(NF - 1) }
        END {
            printf "%.0f J", joules
            if (seconds > 0) printf ", %.0f J per hour of audio", joules * 3600 / seconds
        }' <<< "$1"
}
