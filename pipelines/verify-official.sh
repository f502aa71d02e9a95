#!/usr/bin/env bash
# Downloads an official model and compares its transcript of a recording with openai-whisper's. Needs a network.
#
#   usage: pipelines/verify-official.sh [--from URL] [--audio FILE --text TEXT] [NAME]
#
#   NAME            the model [tiny.en]
#   --from URL      a mirror of Hugging Face to download it from
#   --audio FILE    a recording, and its text; without them jfk.flac of openai-whisper's
#   --text TEXT     repository, which is downloaded
#
# The words are compared with openai-whisper's if python3 has it, else with the known text. The exit
# status is 0 if they are the same.
set -euo pipefail
script=verify-official.sh
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
model="" audio="" text="" from=()
recording=https://github.com/openai/whisper/raw/main/tests/jfk.flac
published='And so my fellow Americans ask not what your country can do for you ask what you can do for your country.'

while [ $# -gt 0 ]; do
    case "$1" in
        --from | --audio | --text) [ $# -ge 2 ] || wrong "$1 needs a value" ;;&
        --from) from=(--from "$2") && shift ;;
        --audio) audio="$2" && shift ;;
        --text) text="$2" && shift ;;
        --help | -h) show_help ;;
        -*) wrong "unknown option '$1'" ;;
        gpt*) wrong "'$1' is not a Whisper model" ;;
        *) [ -z "$model" ] || wrong "more than one NAME (got $model and $1)"; model="$1" ;;
    esac
    shift
done
[ "${audio:+given}" = "${text:+given}" ] || wrong "--audio and --text need each other"
model="${model:-tiny.en}"
[ -z "$audio" ] || [ -f "$audio" ] || wrong "$audio: no such file"
find_tools
command -v hark-model > /dev/null || die "the tools are not built: run pipelines/demo.sh first"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

folder="$(hark-model get "$model" "${from[@]}")"
if [ -z "$audio" ]; then
    audio="$work/jfk.flac"
    curl -fsSL --retry 3 "$recording" -o "$audio" ||
        die "cannot download $recording; give --audio FILE --text TEXT instead"
    text="$published" who="the known text"
    if python3 -c 'import whisper' 2>/dev/null; then
        who="openai-whisper"
        text="$(python3 -c '
import sys, whisper
model = whisper.load_model(sys.argv[1], device="cpu")
print(model.transcribe(sys.argv[2], temperature=0, fp16=False)["text"])' "$model" "$audio")"
    fi
else
    who="--text"
fi
echo "compared with $who: $text"
quoted="$(printf '%s' "$text" | sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/ /g' | tr '\n' ' ')"
printf '{"source": "%s", "text": "%s"}\n' "$(basename "$audio")" "$quoted" > "$work/reference.jsonl"
hark-model verify "$folder/" --reference "$work/reference.jsonl" "$audio"
