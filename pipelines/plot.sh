#!/usr/bin/env bash
# Usage: hark plot COMMAND [OPTION]... ARGUMENT...
# Draws a picture: of a recording's transcript, or of a training run.
#
# Commands:
#   transcript  spectrogram, speech and words of a recording
#   run         loss and learning rate of each step of gpt-train
#
# Options:
#   -h, --help  print a short help and exit
#
# Examples:
#   hark plot transcript talk.mp3 talk.png --model small
#   hark plot run run.tsv run.png
#   gpt-train ... | tee run.tsv | hark plot run - run.png
set -euo pipefail
script="hark plot"
here="$(dirname "${BASH_SOURCE[0]}")"
. "$here/help.sh"
help_if_asked "$@"
case "${1:-}" in
    transcript | run) ;;
    "") wrong "expected transcript or run first" ;;
    t | tr*) wrong "expected transcript or run, got '$1'; did you mean 'transcript'?" ;;
    r*) wrong "expected transcript or run, got '$1'; did you mean 'run'?" ;;
    *) wrong "expected transcript or run, got '$1'" ;;
esac
script="$here/plot-$1"
[ -x "$script" ] || script="$script.sh"
shift
exec "$script" "$@"
