#!/usr/bin/env bash
# flag_names.sh BIN_DIR: libs/core/cli/flag_names.inc, the names of all flags of the tools in BIN_DIR.
set -euo pipefail
cd "$1"
{
    for tool in audio-decode vad mel whisper-transcribe whisper-eval gpt-generate gpt-eval gpt-embed gpt-tokenize gpt-train hark-serve hark-advise hark-doctor hark-redact; do
        ./$tool --help-as names
    done
    for tool in hark-model hark-shard hark-trace; do
        ./$tool --help-as names | while read -r command; do ./$tool "$command" --help-as names; done
    done
} | LC_ALL=C sort -u | sed 's/.*/"&",/'
