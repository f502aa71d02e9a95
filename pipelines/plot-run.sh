#!/usr/bin/env bash
# Usage: hark plot run RUN.tsv|- OUT.png
# Draws the loss curve of a training run: the loss of each step, a smoothed one,
# the validations, and the learning rate on an axis of its own.
#
# RUN.tsv is what gpt-train writes to stdout; - is standard input. The parts of a
# run that was broken off, one after the other, make one curve: of a step that is
# there twice the last line counts.
#
# Options:
#   -h, --help  print this and exit
#
# Examples:
#   hark plot run run.tsv run.png
#   gpt-train ... | tee -a run.tsv | hark plot run - run.png
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
help_if_asked "$@"
[ $# -eq 2 ] && [[ "$1" == - || "$1" != -* ]] && [[ "$2" != -* ]] || {
    echo "hark plot run: expected RUN.tsv and OUT.png; try hark plot run --help" >&2
    exit 2
}
command -v gnuplot >/dev/null || {
    echo "hark plot run: gnuplot is missing: on Debian, apt-get install gnuplot-nox" >&2
    exit 1
}
name="$1" out="$2"
[ "$name" != - ] || name=stdin
if [ "$1" != - ]; then
    [ -f "$1" ] && [ -r "$1" ] || {
        echo "hark plot run: $1: cannot read this file" >&2
        exit 1
    }
    exec <"$1"
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# step loss smoothed validation rate, in the steps' order. The smoothed loss is the mean over a
# fiftieth of the run around the step, over less near the ends.
name="$name" awk -F '\t' '
    function bad(found, where) {
        print "hark plot run: " ENVIRON["name"] ": " where found > "/dev/stderr"
        failed = 1
        exit 1
    }
    function bad_line(found) { bad(found, "line " NR ": ") }
    $1 == "step" { next }
    NF < 5 {
        bad_line("expected a line of gpt-train, step, loss, val_loss, rate, norm; found " NF \
                 (NF == 1 ? " field" : " fields"))
    }
    $1 !~ /^[0-9]+$/ || $2 !~ /^[0-9]/ {
        bad_line("expected a step and its loss, found \"" $1 "\" and \"" $2 "\"")
    }
    {
        step = $1 + 0
        if (first == "" || step < first) first = step
        if (step > last) last = step
        loss[step] = $2; val[step] = $3; rate[step] = $4
    }
    END {
        if (failed) exit 1
        for (step = first; step <= last; ++step) {
            if (!(step in loss)) continue
            at[++n] = step
            sum[n] = sum[n - 1] + loss[step]
        }
        if (n < 2) bad("expected two steps of a run or more, found " n + 0)
        for (i = 1; i <= n; ++i) {
            side = int(n / 100)
            if (side > i - 1) side = i - 1
            if (side > n - i) side = n - i
            mean = (sum[i + side] - sum[i - side - 1]) / (2 * side + 1)
            step = at[i]
            print step, loss[step], mean, (val[step] == "" ? "NaN" : val[step]), rate[step]
        }
    }' >"$work/steps"

vals="$(awk '$4 != "NaN"' "$work/steps" | wc -l)"
validation=""
[ "$vals" -eq 0 ] ||
    validation=", '$work/steps' using 1:4 with points pt 7 ps 1 lc rgb '#d62728' title 'validation'"
gnuplot <<PLOT
set terminal pngcairo size 1280,720 font 'sans,13' noenhanced
set output '$work/out.png'
set datafile missing 'NaN'
set border lc rgb '#444444'
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'step'
set ylabel 'loss (nats a token)'
set y2label 'learning rate' tc rgb '#2ca02c'
set ytics nomirror
set y2tics tc rgb '#2ca02c' format '%.1e'
set y2range [0:*]
set key outside top center horizontal
plot '$work/steps' using 1:5 axes x1y2 with lines lw 1 dt 2 lc rgb '#2ca02c' title 'learning rate', \
     '' using 1:2 with lines lw 1 lc rgb '#aec7e8' title 'training loss', \
     '' using 1:3 with lines lw 2 lc rgb '#1f4e9c' title 'smoothed'$validation
PLOT
# Under a temporary name first, so that a viewer sees a whole picture during a run.
trap 'rm -rf "$work" "$out.unfinished"' EXIT
cp "$work/out.png" "$out.unfinished"
mv "$out.unfinished" "$out"
