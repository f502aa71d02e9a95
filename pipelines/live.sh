#!/usr/bin/env bash
# Usage: hark live [OPTION]... [RECORDING|-]
# Writes what is said while it is said: each sentence when it is final.
#
# The sound is the microphone's, a recording's, or that on standard input. Ctrl-C
# ends it; what was said until then is written.
#
# Options:
#   -m, --model MODEL         Whisper model: a name or a path
#   -l, --language CODE|NAME  spoken language (de, German), or auto [auto]
#   -f, --format F            text, or jsonl for what is not final too [text]
#       --microphone NAME     as ffmpeg names it [the system's]
#       --sound-system S      alsa, pulse or avfoundation [this system's]
#       --show-pipe           print the pipe that would run, and run nothing
#   -h, --help                print a short help and exit
#
# Also all options of: whisper-transcribe.
#
# Examples:
#   hark live
#   hark live --language German --format jsonl
#   ffmpeg -v error -i rtmp://host/stream -f wav - | hark live -
set -uo pipefail
script="hark live"
here="$(dirname "${BASH_SOURCE[0]}")"
. "$here/recordings.sh"
. "$here/flags.sh"
. "$here/help.sh"
help_if_asked "$@"
use_tools || exit

export HARK_WORD_TIMESTAMPS="" # live words have times
input="" microphone="" sound_system="" format=text show_pipe="" transcriber=()
parse() {
    learn_flags whisper-transcribe
    learn_own_flags --microphone --sound-system
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | --help-all | -h | --version) help_if_asked "$1" ;;
            --show-pipe) show_pipe=yes ;;
            -?*)
                take_flag "$@" || refuse_flag "$1"
                shift $((${#words[@]} - 1))
                case "$flag" in
                    --microphone | --sound-system)
                        [ -n "$value" ] || wrong "$flag: expected a value" ;;&
                    --microphone) microphone="$value" ;;
                    --sound-system) sound_system="$value" ;;
                    --format) format="$value" ;;
                    --live) ;;
                    *) transcriber+=("${words[@]}") ;;
                esac
                ;;
            *)
                [ -z "$input" ] || wrong "expected one recording, got $input and $1"
                input="$1"
                ;;
        esac
        shift
    done
    [ -z "$input" ] || [ -z "$microphone$sound_system" ] ||
        wrong "expected a recording or a microphone, got both"
}

# find_microphone: sets `source`, the command that writes its sound, 16-bit at 16 kHz.
find_microphone() {
    if [ -z "$sound_system" ]; then
        sound_system=alsa
        [ "$(uname)" != Darwin ] || sound_system=avfoundation
        [ ! -S "${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/pulse/native" ] &&
            [ -z "${PULSE_SERVER:-}" ] || sound_system=pulse
    fi
    if [ -z "$microphone" ]; then
        microphone=default
        [ "$sound_system" != avfoundation ] || microphone=:default
    fi
    source=(ffmpeg -v error -nostdin -f "$sound_system" -i "$microphone" -ac 1 -ar 16000)
    command -v ffmpeg > /dev/null || die "ffmpeg is not installed; it records the microphone"
    # A microphone that is not there is one message, not one per stage.
    local said
    [ -n "$show_pipe" ] || said="$("${source[@]}" -t 0.1 -f null - 2>&1)" ||
        die "$sound_system: cannot record from '$microphone': ${said##*$'\n'}; name one with --microphone"
    source+=(-f s16le -)
}

parse "$@"
mel=(mel --chunk 1)
if [ -n "$input" ]; then
    [ "$input" = - ] || [ -r "$input" ] || die "$input: cannot read this recording"
    source=(audio-decode --chunk 0.1 "$input")
else
    find_microphone
    mel+=(--raw s16le)
fi
transcriber=(whisper-transcribe --live --format "$format" "${transcriber[@]}")
check_transcriber "${transcriber[@]:1}" || exit
[ "$mels" = 80 ] || mel+=(--mels "$mels")
[ -z "$show_pipe" ] || {
    show_stages "$(quoted "${source[@]}")" "$(quoted "${mel[@]}")" "$(quoted "${transcriber[@]}")"
    exit
}
trap : INT # the last stage ends by itself
"${source[@]}" | "${mel[@]}" | "${transcriber[@]}"
statuses=("${PIPESTATUS[@]}")
[ "${statuses[2]}" -eq 0 ] || exit "${statuses[2]}"
# Ctrl-C, 130, is how a microphone ends.
for status in "${statuses[@]}"; do
    [ "$status" -eq 0 ] || [ "$status" -eq 130 ] || [ "$status" -eq 255 ] || exit "$status"
done
