#!/usr/bin/env bash
# Usage: hark plot run RUN.tsv|- OUT.png
# Draws the curve of a training run: loss, validations, and the learning rate
# below them.
#
# RUN.tsv is what gpt-train writes to stdout; - is standard input. The parts of a
# run that was stopped, one after the other, make one curve: of a step that is
# there twice the last line counts. The picture has the name of the file, or of
# its folder if the file is called run.tsv.
#
# Options:
#   -h, --help  print a short help and exit
#
# Examples:
#   hark plot run run/run.tsv run.png
#   cat first.tsv rest.tsv | hark plot run - run.png
#   gpt-train ... | tee -a run.tsv | hark plot run - run.png
set -euo pipefail
script="hark plot run"
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
help_if_asked "$@"
[ $# -eq 2 ] && [[ "$1" == - || "$1" != -* ]] && [[ "$2" != -* ]] || {
    wrong "expected RUN.tsv and OUT.png"
}
[[ "$2" == *.[Pp][Nn][Gg] ]] || {
    say "$2: expected a name that ends in .png for the picture"
    exit 2
}
command -v gnuplot >/dev/null || {
    die "gnuplot is missing: on Debian, apt-get install gnuplot-nox"
}
name="$1" out="$2" title="training run"
if [ "$1" = - ]; then
    name=stdin
else
    [ -f "$1" ] && [ -r "$1" ] || {
        die "$1: cannot read this file"
    }
    exec <"$1"
    title="$(realpath -- "$1")"
    [ "${title##*/}" != run.tsv ] || title="${title%/*}"
    title="${title##*/}" title="${title%.tsv}"
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# Writes `steps`: step, loss, smoothed loss, validation, learning rate, in the steps' order; and
# `settings`: what gnuplot is told of their range. The smoothed loss is the mean over a fiftieth of
# the run around the step, over less near the ends.
name="$name" title="$title" work="$work" LC_ALL=C awk -F '\t' '
    function bad(found, where) {
        print "hark plot run: " ENVIRON["name"] ": " where found > "/dev/stderr"
        failed = 1
        exit 1
    }
    function bad_line(found) { bad(found, "line " NR ": ") }
    function quoted(text) {  # a quote at the beginning would be read as an empty text
        sub(/^\047/, " \047", text)
        gsub("\047", "\047\047", text)
        gsub(/[\001-\037]/, " ", text)
        return "\047" text "\047"
    }
    function setting(line) { print line > (ENVIRON["work"] "/settings") }

    # Ticks of a logarithmic axis from `low` to `high`: not powers of ten alone, since most runs stay
    # within one.
    function ticks(low, high,   digits, list, power, i, value) {
        split(high / low > 30 ? "1 2 5" : "1 1.5 2 2.5 3 4 5 6 8", digits, " ")
        for (power = 1e-6; power < 1e6; power *= 10)
            for (i = 1; i in digits; ++i) {
                value = digits[i] * power
                if (value >= low && value <= high) list = list (list == "" ? "" : ", ") value
            }
        return list
    }
    function duration(ms) {
        ms /= 1000
        if (ms < 60) return sprintf("%.0f s", ms)
        if (ms < 3600) return sprintf("%d:%02d min", int(ms / 60), ms % 60)
        return sprintf("%d:%02d h", int(ms / 3600), int(ms / 60) % 60)
    }

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
        loss[step] = $2; val[step] = $3; rate[step] = $4; ms[step] = $6
    }
    END {
        if (failed) exit 1
        for (step = first; step <= last; ++step) {
            if (!(step in loss)) continue
            at[++n] = step
            sum[n] = sum[n - 1] + loss[step]
            time += ms[step]
            if (rate[step] > highest_rate) highest_rate = rate[step]
            if (n == 1 || loss[step] < low) low = loss[step]
            if (n == 1 || loss[step] > high) high = loss[step]
            if (val[step] == "") continue
            last_val = val[step]
            if (best == "" || last_val < best) { best = last_val; best_at = step }
            if (last_val < low) low = last_val
            if (last_val > high) high = last_val
        }
        if (n < 2) bad("expected two steps of a run or more, found " n + 0)
        for (i = 1; i <= n; ++i) {
            side = int(n / 100)
            if (side > i - 1) side = i - 1
            end = i + side < n ? i + side : n
            mean = (sum[end] - sum[i - side - 1]) / (end - i + side + 1)
            step = at[i]
            print step, loss[step], mean, (val[step] == "" ? "NaN" : val[step]), rate[step] > \
                (ENVIRON["work"] "/steps")
        }
        summary = sprintf("step %d", last) (time > 0 ? " after " duration(time) : "") \
            sprintf(", loss %.3f", loss[last])
        if (best != "") summary = summary sprintf(", validation %.3f", last_val)
        if (best != last_val) summary = summary sprintf(", lowest %.3f at step %d", best, best_at)
        setting("set label 1 " quoted(ENVIRON["title"]) " at screen 0.07,0.96 font \047,17\047")
        setting("set label 2 " quoted(summary) " at screen 0.07,0.92 tc rgb \047#555555\047")
        setting(sprintf("set xrange [%d:%d]", first, last))
        setting("highest_rate = " (highest_rate > 0 ? highest_rate : 1))
        if (low > 0 && high / low > 1.6) {
            setting("set logscale y")
            setting(sprintf("set yrange [%g:%g]", low / 1.04, high * 1.04))
            setting("set ytics (" ticks(low / 1.04, high * 1.04) ")")
        }
    }'

awk '$4 != "NaN" { print $1, $4 }' "$work/steps" >"$work/validations"
validations=""
[ ! -s "$work/validations" ] || validations=", '$work/validations' using 1:2 with linespoints \
    lw 2 pt 7 ps 1 lc rgb '#c8501e' title 'validation'"
cat >"$work/plot" <<PLOT
set terminal pngcairo size 1280,720 font 'sans,13' noenhanced background rgb 'white'
set output '$work/out.png'
set datafile missing 'NaN'
set border 3 lc rgb '#888888'
set tics nomirror tc rgb '#333333'
set grid lt 1 lw 0.5 lc rgb '#e4e4e4'
set lmargin at screen 0.07
set rmargin at screen 0.975
load '$work/settings'
set multiplot
set tmargin at screen 0.88
set bmargin at screen 0.25
set format x ''
set ylabel 'loss (nats per token)' offset 1
set key inside top right Left reverse samplen 2 spacing 1.2
plot '$work/steps' using 1:2 with lines lw 1 lc rgb '#b5cbe8' title 'training, each step', \
     '' using 1:3 with lines lw 2.5 lc rgb '#1f4e9c' title 'training, smoothed'$validations
unset label
unset logscale
unset key
set format x '%g'
set tmargin at screen 0.21
set bmargin at screen 0.09
set xlabel 'step' offset 0,0.4
unset ylabel
set label 1 'learning rate' at graph 0.995,0.7 right front tc rgb '#888888'
set yrange [0:1.1 * highest_rate]
set ytics (0, highest_rate) tc rgb '#888888'
unset grid
plot '$work/steps' using 1:5 with filledcurves y1=0 fc rgb '#eeeeee', \
     '' using 1:5 with lines lw 1 lc rgb '#999999'
PLOT
gnuplot "$work/plot"
# Under a temporary name first, so that a viewer sees a whole picture during a run.
trap 'rm -rf "$work" "$out.unfinished"' EXIT
cp "$work/out.png" "$out.unfinished"
mv "$out.unfinished" "$out"
