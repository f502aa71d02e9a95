# Lays out the picture of plot-transcript.sh: reads its tables, writes the commands for gnuplot.
#
#   strips   first second, where its values begin in the mel stream, frames; spaces between
#   regions  begin and end of speech in samples; spaces between
#   fonts    of each font, the characters that it has: code points and ranges, hexadecimal
#   words    start, end, probability, text; tabs between
#
# A strip has three plots, one below the other. A word takes the highest row on which it touches no
# other. The environment has name, work (the folder), bands, seconds, loudest and strip (seconds).
# Heights are pixels; text is taken for bytes (LC_ALL=C).

function quoted(text) {
    gsub("'", "''", text)
    gsub(/[\001-\037]/, " ", text)
    return "'" text "'"
}

# Scripts from U+2E80 on and emoji take two columns; marks are counted too.
function columns(text,   wide) {
    wide = gsub(/[\343-\355\360-\364][\200-\277]/, "", text)
    gsub(/[\200-\277]/, "", text)
    return length(text) + 2 * wide
}

function from_hex(digits,   value, i) {
    for (i = 1; i <= length(digits); ++i)
        value = 16 * value + index("123456789abcdef", substr(digits, i, 1))
    return value
}

# Whether any font has the character, which is one of several bytes.
function drawable(character,   code, i, range, ends) {
    if (character in known) return known[character]
    code = byte[substr(character, 1, 1)] % (length(character) == 2 ? 32 : length(character) == 3 ? 16 : 8)
    for (i = 2; i <= length(character); ++i) code = 64 * code + byte[substr(character, i, 1)] % 64
    known[character] = 0
    for (range in covered) {
        split(covered[range], ends, "-")
        if (code >= ends[1] && code <= ends[2]) known[character] = 1
    }
    return known[character]
}

# gnuplot would draw a character that no font has as large as the picture: a square stands for it.
function visible(text,   shown, character, lead) {
    while (match(text, /[\300-\367][\200-\277]+/)) {
        lead = byte[substr(text, RSTART, 1)]
        character = substr(text, RSTART, lead >= 240 ? 4 : lead >= 224 ? 3 : 2)
        shown = shown substr(text, 1, RSTART - 1)
        text = substr(text, RSTART + length(character))
        if (drawable(character)) shown = shown character
        else if (character !~ /^(\342\200[\213-\217]|\357\270[\200-\217])$/) { # joiners, variants
            shown = shown "\342\226\241"
            squares = 1
        }
    }
    return shown text
}

# As gnuplot reads it from a table.
function label(text) {
    gsub(/"/, "''", text)
    gsub(/\\/, "\\\\&", text)
    return visible(text)
}

function minutes(time) { return sprintf("%d:%02d", int(time / 60), time % 60) }

function colour(probability) {
    if (probability >= 0.7) return dark
    return probability >= 0.4 ? orange : red
}

# Gives the words of a strip their rows, and writes its table `words.N`: start, end, probability,
# where the text is, its row, its colour, the text.
function place(s,   w, half, middle, row, taken) {
    rows[s] = 1
    for (w = 1; w <= words; ++w) {
        if (s > 1 && start[w] < begin[s]) continue
        if (s < strips && start[w] >= begin[s] + span) continue
        half = (columns(text[w]) * letter / 2 + 6) / scale
        middle = (start[w] + end[w]) / 2
        if (middle > begin[s] + span - half) middle = begin[s] + span - half
        if (middle < begin[s] + half) middle = begin[s] + half
        for (row = 1; row in taken && taken[row] > middle - half; ++row);
        taken[row] = middle + half
        if (row > rows[s]) rows[s] = row
        print start[w] "\t" end[w] "\t" probability[w] "\t" middle "\t" row "\t" \
              colour(probability[w]) "\t" label(text[w]) > (table "." s)
        filled[s] = 1
    }
    close(table "." s)
    height += mel_height + words_height(s) + sure_height + 2 * gap + below
}

function words_height(s) { return (rows[s] < 2 ? 2 : rows[s]) * row_height + 12 }

# A position in the whole picture, from its left and its top.
function at_pixel(x, y) { return sprintf("screen %.6f,%.6f", x / width, 1 - y / height) }

function heading(   loudest, share, summary) {
    print "set terminal pngcairo size " width "," height " font 'sans,11' noenhanced"
    print "set output " quoted(ENVIRON["work"] "/out.png")
    print "set datafile separator \"\\t\""
    print "set datafile commentschars ''"
    print "set multiplot"
    print "set border lc rgb '#444444'"
    print "set tics nomirror scale 0.5"
    printf "set lmargin at screen %.6f\n", left / width
    printf "set rmargin at screen %.6f\n", 1 - right / width
    print "set palette defined (0 '#00000a', 0.3 '#3b0f70', 0.55 '#b5367a', 0.8 '#fb8861', 1 '#fcfdbf')"
    # The model sees nothing that is 8 below the loudest. Silence is dark.
    loudest = ENVIRON["loudest"] > -2 ? ENVIRON["loudest"] : -2
    printf "set cbrange [%g:%g]\n", loudest - 8, loudest
    print "set cblabel 'log10 of power' offset 0.6"
    share = 100 * spoken / seconds
    summary = sprintf("%s, %d word%s, %.0f %% speech", \
        seconds < 60 ? seconds " s" : minutes(seconds) " min", words, words == 1 ? "" : "s", share)
    print "set label 1 " quoted(visible(ENVIRON["name"])) " at " at_pixel(left, 24) " font ',14'"
    print "set label 2 " quoted(summary) " at " at_pixel(left, 50)
    print "set object 1 rect from " at_pixel(width - 614, 58) " to " at_pixel(width - 598, 42) \
          " fc rgb '" green "' fs solid noborder"
    print "set label 3 'speech (vad)' at " at_pixel(width - 592, 50)
    print "set label 4 'probability of a word:' at " at_pixel(width - 470, 50)
    print "set label 5 '0.7 or more' at " at_pixel(width - 306, 50) " tc rgb " dark
    print "set label 6 '0.4 or more' at " at_pixel(width - 212, 50) " tc rgb " orange
    print "set label 7 'less' at " at_pixel(width - 114, 50) " tc rgb " red
}

# The next plot, `pixels` high; `at` is where it begins. Its name is left of it.
function area(pixels, name) {
    print "set label 8 " quoted(name) " at " at_pixel(18, at + pixels / 2) " center rotate by 90"
    printf "set tmargin at screen %.6f\n", 1 - at / height
    printf "set bmargin at screen %.6f\n", 1 - (at + pixels) / height
    at += pixels
}

function draw_mel(s) {
    area(mel_height, "mel band")
    printf "set colorbox user origin %s size screen %.6f,%.6f\n", at_pixel(width - right + 12, at), \
        14 / width, mel_height / height
    printf "set yrange [0:%d]\nset ytics %d\n", ENVIRON["bands"], ENVIRON["bands"] / 2
    printf "plot %s binary skip=%d array=(%d,%d) format='%%float32' dx=0.01 dy=1 ", \
        quoted(ENVIRON["work"] "/mel"), data[s], frames[s], ENVIRON["bands"]
    printf "origin=(%.3f,0.5) with image notitle\n", begin[s] + 0.005
    print "unset colorbox"
    at += gap
}

function draw_speech(s,   r, last, low, high) {
    last = begin[s] + span
    for (r = 1; r <= regions; ++r) {
        low = from[r] > begin[s] ? from[r] : begin[s]
        high = to[r] < last ? to[r] : last
        if (low >= high) continue
        printf "set object rect from %.6f, graph 0 to %.6f, graph 1 ", low, high
        print "fc rgb '" green "' fs solid noborder behind"
    }
}

# A plot with a line outside of what is shown, so that one without words is a plot as well.
function draw_table(s, commands) {
    gsub(/FILE/, quoted(table "." s), commands)
    print "plot -1 lc rgb 'white' notitle" (filled[s] ? ", " commands : "")
}

function draw_words(s) {
    area(words_height(s), "words")
    printf "set yrange [%g:0.35]\n", (rows[s] < 2 ? 2 : rows[s]) + 0.75
    print "unset ytics"
    # The lines of two words that touch do not.
    print "short = " 1.5 / scale
    draw_table(s, "FILE using ($1+short):($5+0.48):($2-$1>3*short?$2-$1-2*short:0):(0):6 " \
        "with vectors nohead lw 2 lc rgb variable notitle, " \
        "FILE using 4:5:7:6 with labels tc rgb variable notitle")
    at += gap
}

function draw_probability(s,   time, marks) {
    area(sure_height, "probability")
    print "set yrange [0:1]\nset ytics 0.5"
    for (time = begin[s]; time <= begin[s] + span && span > 8; ++time)
        marks = marks (marks == "" ? "" : ", ") "'" (time % 2 ? "" : minutes(time)) "' " time
    print "set xtics " (marks == "" ? "format '%g s'" : "(" marks ")")
    draw_table(s, "FILE using 1:(0):1:2:(0):3:6 with boxxyerror lc rgb variable fs solid 0.4 border notitle")
    at += below
}

function draw(s) {
    printf "set xrange [%.6f:%.6f]\n", begin[s], begin[s] + span
    print "set xtics " (span > 8 ? 1 : span > 2 ? 0.5 : 0.1) " format ''"
    draw_mel(s)
    print "unset label\nunset object"
    draw_speech(s)
    draw_words(s)
    draw_probability(s)
    print "unset object"
}

BEGIN {
    FS = "\t"
    seconds = ENVIRON["seconds"]
    table = ENVIRON["work"] "/words"
    width = 1600; left = 70; right = 90; top = 70; letter = 7.9
    mel_height = 150; sure_height = 78; row_height = 19; gap = 5; below = 44
    for (i = 1; i < 256; ++i) byte[sprintf("%c", i)] = i
    green = "#cdebc5"; dark = 1052688; orange = 12346112; red = 13107236
}
FILENAME ~ /\/strips$/ {
    split($0, field, " ")
    if (field[1] >= seconds) next # frames after the end
    begin[++strips] = field[1]; data[strips] = field[2]; frames[strips] = field[3]
    next
}
FILENAME ~ /\/regions$/ {
    split($0, field, " ")
    from[++regions] = field[1] / 16000; to[regions] = field[2] / 16000
    spoken += to[regions] - from[regions]
    next
}
FILENAME ~ /\/fonts$/ {
    count = split($0, field, " ")
    for (i = 1; i <= count; ++i) {
        if (field[i] in covered) continue
        split(field[i], ends, "-")
        covered[field[i]] = from_hex(ends[1]) "-" from_hex(ends[2] == "" ? ends[1] : ends[2])
    }
    next
}
{
    ++words
    start[words] = $1; end[words] = $2; probability[words] = $3; text[words] = $4
}
END {
    span = strips > 1 ? ENVIRON["strip"] : seconds
    scale = (width - left - right) / span # pixels a second
    height = top
    for (s = 1; s <= strips; ++s) place(s)
    if (height > 32000) { # of the 32,767 that a picture may have
        print "plot-transcript.sh: " ENVIRON["name"] ": too many words at once for a picture" > "/dev/stderr"
        exit 1
    }
    heading()
    at = top
    for (s = 1; s <= strips; ++s) draw(s)
    if (squares)
        print "plot-transcript.sh: a square stands for each character that no font here has; on " \
            "Debian, fonts-noto-core and fonts-noto-cjk have most" > "/dev/stderr"
}
