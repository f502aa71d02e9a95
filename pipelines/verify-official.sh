#!/usr/bin/env bash
# On a machine with a network: does an official model, fetched by hark-model, understand a person?
#
#   usage: pipelines/verify-official.sh [--from URL] [--audio FILE --text TEXT] [NAME]
#
#   NAME            the model [tiny.en]
#   --from URL      a mirror of Hugging Face to fetch it from
#   --audio FILE    another recording than openai-whisper's jfk.flac, which is fetched from its
#   --text TEXT     repository, and what is said in it
#
# The words are compared with openai-whisper's, where python3 has it, or else with what is known to
# be said. The exit status is 0 where they are the same.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
model="" audio="" text="" from=()
recording=https://github.com/openai/whisper/raw/main/tests/jfk.flac
published='And so my fellow Americans ask not what your country can do for you ask what you can do for your country.'

wrong() { echo "verify-official.sh: $*; try $0 --help" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case "$1" in
        --from | --audio | --text) [ $# -ge 2 ] || wrong "$1: expected a value" ;;&
        --from) from=(--from "$2") && shift ;;
        --audio) audio="$2" && shift ;;
        --text) text="$2" && shift ;;
        --help | -h) show_help ;;
        -*) wrong "'$1' is not one of its options" ;;
        gpt*) wrong "'$1' is no Whisper model" ;;
        *) [ -z "$model" ] || wrong "expected one NAME, found $model and $1"; model="$1" ;;
    esac
    shift
done
[ "${audio:+given}" = "${text:+given}" ] || wrong "expected --audio and --text together"
model="${model:-tiny.en}"
[ -z "$audio" ] || [ -f "$audio" ] || wrong "$audio: there is no such recording"
PATH="$PATH:$(cd "$(dirname "$0")/.." && pwd)/build/bin"
command -v hark-model >/dev/null || {
    echo "verify-official.sh: the tools are not built: run pipelines/demo.sh first" >&2
    exit 1
}
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

folder="$(hark-model get "$model" "${from[@]}")"
if [ -z "$audio" ]; then
    audio="$work/jfk.flac"
    curl -fsSL --retry 3 "$recording" -o "$audio" || {
        echo "verify-official.sh: cannot fetch $recording; --audio FILE --text TEXT needs no other" >&2
        exit 1
    }
    text="$published" who="what is known to be said"
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
