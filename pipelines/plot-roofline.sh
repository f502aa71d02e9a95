#!/usr/bin/env bash
# Usage: pipelines/plot-roofline.sh TABLE.tsv|- OUT.png
# Draws the roofline of a machine's kernels: GFLOP/s of each row of `bench
# kernels` over the operations per byte that it needs, below what memory and
# products of this run allow.
#
# A point's area grows with its time. Roofs are the rows "read ... MB" and
# "product 2048 cubed". Needs gnuplot.
#
# Options:
#   -h, --help  print a short help and exit
#
# Examples:
#   build/bin/bench kernels --threads 2 > kernels.tsv
#   pipelines/plot-roofline.sh kernels.tsv roofline.png
# Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
set -euo pipefail
script="pipelines/plot-roofline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
help_if_asked "$@"
[ $# -eq 2 ] && [[ "$1" == - || "$1" != -* ]] && [[ "$2" == [!-]*.[Pp][Nn][Gg] ]] ||
    wrong "expected TABLE.tsv and OUT.png"
command -v gnuplot > /dev/null || die "gnuplot is missing: on Debian, apt-get install gnuplot-nox"
name="$1"
if [ "$1" = - ]; then
    name=stdin
else
    [ -f "$1" ] && [ -r "$1" ] || die "$1: cannot read this file"
    exec < "$1"
fi
work="$(mktemp -d)"
trap 'rm -rf "$work" "$2.unfinished"' EXIT

# Writes `points`: flop per byte, GFLOP/s, size, what, a block per type; `types`; `roofs`, which are
# functions of x; and `settings`: labels and ranges.
name="$name" work="$work" LC_ALL=C awk -F '\t' '
    function bad(found) {
        print "pipelines/plot-roofline.sh: " ENVIRON["name"] ": " found > "/dev/stderr"
        failed = 1
        exit 1
    }
    function quoted(text) { gsub("\047", "\047\047", text); return "\047" text "\047" }
    function setting(line) { print line > (ENVIRON["work"] "/settings") }
    NR == 1 && ($1 != "what" || $9 != "gflop" || $10 != "mb") {
        bad("expected the table of bench kernels, found \"" $1 "\" as its first heading")
    }
    NR == 1 { next }
    $1 ~ /^read / && $6 == "GB/s" { memory[++memories] = $5; of_memory[memories] = substr($1, 6) }
    $1 ~ /^product / && $6 == "GFLOP/s" { product[++products] = $5; of_product[products] = $2 }
    $9 > 0 && $10 > 0 && $4 > 0 {
        if (!($2 in count)) types[++kinds] = $2
        i = ++count[$2]
        at = 1000 * $9 / $10
        rate = 1000 * $9 / $4
        if (!low || at < low) low = at
        if (at > high) high = at
        if (!slow || rate < slow) slow = rate
        if ($4 > longest) longest = $4
        line[$2, i] = at "\t" rate; ms[$2, i] = $4; what[$2, i] = $1
    }
    END {
        if (failed) exit 1
        if (!kinds) bad("found no row with gflop and mb")
        if (!memories || !products) bad("found no rows of the limits, read and product")
        for (t = 1; t <= kinds; ++t) {
            print types[t] > (ENVIRON["work"] "/types")
            for (i = 1; i <= count[types[t]]; ++i)
                print line[types[t], i] "\t" 0.6 + 3 * sqrt(ms[types[t], i] / longest) "\t" \
                    what[types[t], i] > (ENVIRON["work"] "/points")
            print "\n" > (ENVIRON["work"] "/points")
        }
        low /= 2; high *= 2
        for (p = 1; p <= products; ++p) {
            if (product[p] > most) most = product[p]
            setting("set label " quoted(of_product[p] " product, " product[p] " GFLOP/s") \
                " at " high "," product[p] " right offset 0,0.5 tc rgb \047#777777\047")
        }
        for (m = 1; m <= memories; ++m) {
            if (memory[m] > fastest) fastest = memory[m]
            height = most / 2 ^ (m + 1)
            setting("set label " quoted("read " of_memory[m] ", " memory[m] " GB/s") " at " \
                height / memory[m] "," height " left offset 1,0 tc rgb \047#777777\047")
            roofs = roofs (m > 1 ? ", " : "") "min(" most ", x * " memory[m] ")"
        }
        for (p = 1; p <= products; ++p) roofs = roofs ", min(" product[p] ", x * " fastest ")"
        print roofs > (ENVIRON["work"] "/roofs")
        setting(sprintf("set xrange [%g:%g]", low, high))
        setting(sprintf("set yrange [%g:%g]", slow / 2, most * 2))
    }'

plots=""
while IFS= read -r roof; do
    plots+="${plots:+, }$roof with lines lw 1.5 lc rgb '#999999' notitle"
done < <(sed 's/), min/)\nmin/g' "$work/roofs")
number=0
while IFS= read -r type; do
    plots+=", '$work/points' index $number using 1:2:3 with points pt 7 ps variable"
    plots+=" lc $((number + 1)) title '$type'"
    number=$((number + 1))
done < "$work/types"
cat > "$work/plot" << PLOT
set terminal pngcairo size 1280,800 font 'sans,12' noenhanced background rgb 'white'
set output '$work/out.png'
min(a, b) = a < b ? a : b
set samples 400
set logscale xy
set border 3 lc rgb '#888888'
set tics nomirror tc rgb '#333333'
set grid lt 1 lw 0.5 lc rgb '#e4e4e4'
set xlabel 'floating-point operations per byte'
set ylabel 'GFLOP/s'
set key bottom right
set datafile separator "\t"
load '$work/settings'
plot $plots
PLOT
gnuplot "$work/plot"
cp "$work/out.png" "$2.unfinished"
mv "$2.unfinished" "$2"
