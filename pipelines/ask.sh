#!/usr/bin/env bash
# Speech to prompt to answer.
#
#   usage: pipelines/ask.sh RECORDING [TEMPLATE [WHISPER-MODEL [GPT-MODEL]]]
#          pipelines/ask.sh question.mp3 'Question: {} Answer:' ~/models/whisper-small/ demo
#
# {} in the template stands for what was said; without models, the demonstration models. The tools
# on the PATH are taken, or those of this source tree's build/bin.
#
#   recording -> audio-decode -> mel -> whisper-transcribe -> template -> gpt-generate
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
help_if_asked "$@"
# No flags: the names of recording and models come in their order.
[ $# -ge 1 ] && [ $# -le 4 ] && [[ "$1" != -* && "${3:-}" != -* && "${4:-}" != -* ]] || {
    echo "usage: $0 RECORDING [TEMPLATE [WHISPER-MODEL [GPT-MODEL]]]" >&2
    exit 2
}
template="${2:-}"
[ -n "$template" ] || template='{}'
[[ "$template" == *'{}'* ]] || {
    echo "ask.sh: expected {} in the template, where what was said belongs; found '$template'" >&2
    exit 2
}
PATH="$PATH:$(cd "$(dirname "$0")/.." && pwd)/build/bin"
command -v gpt-generate >/dev/null || {
    echo "ask.sh: the tools are not built: run pipelines/demo.sh first" >&2
    exit 1
}
audio-decode "$1" | mel | whisper-transcribe --model "${3:-demo}" | tr '\n' ' ' |
    gpt-generate --model "${4:-demo}" --prompt "$template"
