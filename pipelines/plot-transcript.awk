# Lays out the picture of plot-transcript.sh: reads its tables, writes the commands for gnuplot.
#
#   strips   first second, where its values begin in the mel stream, frames; spaces between
#   regions  begin and end of speech in samples; spaces between
#   fonts    of each font, the characters that it has: code points and ranges, hexadecimal
#   words    start, end, probability, text; tabs between
#
# A strip has three plots, one below the other: spectrogram and speech, words, probabilities. Words are
# text, a line for each sentence, which begins below its time if there is room. The environment has
# name, work (the folder), bands, seconds, loudest and strip (seconds). Heights are pixels; text is
# read as bytes (LC_ALL=C).

# gnuplot reads a quote at the beginning as an empty text.
function quoted(text) {
    sub(/^'/, " '", text)
    gsub("'", "''", text)
    gsub(/[\001-\037]/, " ", text)
    return "'" text "'"
}

# The width of a text in pixels, in DejaVu Sans, fontconfig's sans on Debian. Scripts from U+2E80 on and
# emoji take a square; marks are counted too.
function pixels_of(text,   total) {
    total = 1.0 * gsub(/[\343-\355\360-\364][\200-\277]+/, "", text)
    gsub(/[\200-\277]/, "", text)
    total += 0.30 * gsub(/[ijlI.,:;|'!]/, "", text) + 0.40 * gsub(/[frt()\/ -]/, "", text)
    total += 0.97 * gsub(/[mMW%@]/, "", text) + 0.82 * gsub(/w/, "", text)
    total += 0.70 * gsub(/[A-Z]/, "", text)
    return em * (total + 0.61 * length(text))
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

# gnuplot would draw a character that no font has as large as the picture: a square replaces it.
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

function minutes(time) { return sprintf("%d:%02d", int(time / 60), time % 60) }

function colour(probability) {
    if (probability >= 0.7) return dark
    return probability >= 0.4 ? orange : red
}

function end_of(s) { return s < strips ? begin[s] + span : seconds }

# A line of words [first, last], `wide` pixels: in the highest row that has room.
function place_line(s, first, last, wide,   x, row, w) {
    x = left + (start[first] - begin[s]) * scale
    if (x > width - right - wide) x = width - right - wide
    if (x < left) x = left
    for (row = 1; row in taken && taken[row] > x - 2 * em; ++row);
    taken[row] = x + wide
    if (row > rows[s]) rows[s] = row
    for (w = first; w <= last; ++w) {
        row_of[w] = row; x_of[w] = x
        x += pixels_of(text[w]) + 0.32 * em
    }
}

# Gives the words of a strip their places, and writes its table `words.N`: start, end, probability,
# colour. A sentence ends with its full stop, or before a pause of two seconds.
function place(s,   w, first, wide, all) {
    rows[s] = 1
    split("", taken)
    for (w = next_word; w <= words && (s == strips || start[w] < begin[s] + span); ++w) {
        print start[w] "\t" end[w] "\t" probability[w] "\t" colour(probability[w]) > (table "." s)
        all = pixels_of(text[w]) + 0.32 * em
        if (first && (ended[w - 1] || start[w] > end[w - 1] + 2 || wide + all > width - left - right)) {
            place_line(s, first, w - 1, wide)
            first = 0
        }
        if (!first) { first = w; wide = 0 }
        wide += all
    }
    if (first) place_line(s, first, w - 1, wide)
    first_word[s] = next_word; last_word[s] = w - 1
    next_word = w
    close(table "." s)
    height += mel_height + speech_height + words_height(s) + sure_height + 2 * gap + below
}

function words_height(s) { return rows[s] * row_height + 14 }

# A position in the whole picture, from its left and its top.
function at_pixel(x, y) { return sprintf("screen %.6f,%.6f", x / width, 1 - y / height) }

function heading(   loudest, share, summary) {
    print "set terminal pngcairo size " width "," height " font 'sans,11' noenhanced"
    print "set output " quoted(ENVIRON["work"] "/out.png")
    print "set datafile separator \"\\t\""
    print "set datafile commentschars ''"
    print "unset key"
    print "set multiplot"
    print "set border lc rgb '#444444'"
    print "set tics nomirror scale 0.5"
    printf "set lmargin at screen %.6f\n", left / width
    print "set palette defined (0 '#00000a', 0.3 '#3b0f70', 0.55 '#b5367a', 0.8 '#fb8861', 1 '#fcfdbf')"
    # The model's input ends 8 below the loudest value. Silence is dark.
    loudest = ENVIRON["loudest"] > -2 ? ENVIRON["loudest"] : -2
    printf "set cbrange [%g:%g]\n", loudest - 8, loudest
    print "set cblabel 'log10 of power' offset 0.6"
    share = 100 * spoken / seconds
    summary = sprintf("%s, %d word%s, %.0f %% speech", \
        seconds < 60 ? seconds " s" : minutes(seconds) " min", words, words == 1 ? "" : "s", share)
    print "set label 1 " quoted(visible(ENVIRON["name"])) " at " at_pixel(left, 24) " font ',14'"
    print "set label 2 " quoted(summary) " at " at_pixel(left, 50)
    print "set object 1 rect from " at_pixel(width - 674, 54) " to " at_pixel(width - 658, 46) \
          " fc rgb '" green "' fs solid noborder"
    print "set label 3 'speech (vad)' at " at_pixel(width - 652, 50)
    print "set label 4 'probability of a word:' at " at_pixel(width - 532, 50)
    legend(5, "0.7 or more", width - 364, 82, 1)
    legend(6, "0.4 to 0.7", width - 264, 70, 0.5)
    legend(7, "below 0.4", width - 176, 66, 0)
}

function legend(tag, name, x, wide, probability) {
    print "set label " tag " " quoted(name) " at " at_pixel(x, 50) " tc rgb " colour(probability)
    underline(x, x + wide, 60, probability)
}

# Words that may be wrong have a line below them: dashed, or solid for the least probable.
function underline(from_x, to_x, y, probability) {
    if (probability >= 0.7) return
    print "set arrow from " at_pixel(from_x, y) " to " at_pixel(to_x, y) " nohead lw 1.5 lc rgb " \
        colour(probability) " dt " (probability >= 0.4 ? "(4,3)" : "solid")
}

# The next plot, `pixels` high; `at` is where it begins. Its name is at its left.
function area(pixels, name) {
    print "set label 8 " quoted(name) " at " at_pixel(18, at + pixels / 2) " center rotate by 90"
    printf "set tmargin at screen %.6f\n", 1 - at / height
    printf "set bmargin at screen %.6f\n", 1 - (at + pixels) / height
    at += pixels
}

# Where a frequency is on the axis of the bands: the mel scale of Slaney's Auditory Toolbox, which is
# linear up to 1 kHz, has bands of the same width up to 8 kHz.
function band_of(hertz) {
    return (ENVIRON["bands"] + 1) * mels_of(hertz) / mels_of(8000) - 0.5
}
function mels_of(hertz) {
    return hertz < 1000 ? 3 * hertz / 200 : 15 + 27 * log(hertz / 1000) / log(6.4)
}

function draw_mel(s) {
    area(mel_height, "Hz")
    if (s == 1)
        printf "set colorbox user origin %s size screen %.6f,%.6f\n", \
            at_pixel(width - right + 12, at), 14 / width, mel_height / height
    printf "set yrange [0:%d]\n", ENVIRON["bands"]
    printf "set ytics nomirror scale 0.5 ('500' %.2f, '1k' %.2f, '2k' %.2f, '4k' %.2f)\n", band_of(500), band_of(1000), \
        band_of(2000), band_of(4000)
    printf "plot %s binary skip=%d array=(%d,%d) format='%%float32' dx=0.01 dy=1 ", \
        quoted(ENVIRON["work"] "/mel"), data[s], frames[s], ENVIRON["bands"]
    printf "origin=(%.3f,0.5) with image notitle\n", begin[s] + 0.005
    print "unset colorbox"
    print "unset label\nunset object\nunset arrow"
}

# A thin bar right below the spectrogram, green while there is speech.
function draw_speech(s,   r, low, high) {
    at += 3
    area(speech_height, "")
    for (r = 1; r <= regions; ++r) {
        low = from[r] > begin[s] ? from[r] : begin[s]
        high = to[r] < end_of(s) ? to[r] : end_of(s)
        if (low >= high) continue
        printf "set object rect from %.6f, graph 0 to %.6f, graph 1 ", low, high
        print "fc rgb '" green "' fs solid noborder"
    }
    print "unset border\nunset ytics\nunset xtics\nset yrange [0:1]"
    print "plot -1 notitle"
    print "unset object"
    at += gap
}

function draw_words(s,   w, y) {
    for (w = first_word[s]; w <= last_word[s]; ++w) {
        y = at + (row_of[w] - 0.5) * row_height + 4
        print "set label " quoted(visible(text[w])) " at " at_pixel(x_of[w], y) " tc rgb " \
            colour(probability[w])
        underline(x_of[w], x_of[w] + pixels_of(text[w]), y + 9, probability[w])
    }
    at += words_height(s)
}

function draw_probability(s,   time, marks) {
    area(sure_height, "probability")
    print "set border 3 lc rgb '#444444'\nset yrange [0:1.1]\nset ytics 1 nomirror scale 0.5"
    for (time = begin[s]; time <= end_of(s); time += step)
        marks = marks (marks == "" ? "" : ", ") "'" \
            (step < 1 ? sprintf("%g s", time) : time % 2 ? "" : minutes(time)) "' " time
    print "set xtics nomirror scale 0.5 (" marks ")"
    # The lines of two words that touch do not.
    print "short = " 1.5 / scale
    # A strip without words is a plot as well: of a line outside of what is shown.
    print "plot -1 lc rgb 'white' notitle" (first_word[s] > last_word[s] ? "" : ", " \
        quoted(table "." s) " using ($1+short):3:($2-$1>3*short?$2-$1-2*short:$2-$1):(0):4 " \
        "with vectors nohead lw 3 lc rgb variable notitle")
    print "unset label\nunset arrow\nset border lc rgb '#444444'"
    at += below
}

function draw(s) {
    printf "set xrange [%.6f:%.6f]\n", begin[s], end_of(s)
    printf "set rmargin at screen %.6f\n", (left + (end_of(s) - begin[s]) * scale) / width
    print "set xtics nomirror scale 0.5 " step " format ''"
    draw_mel(s)
    draw_speech(s)
    draw_words(s)
    draw_probability(s)
}

BEGIN {
    FS = "\t"
    seconds = ENVIRON["seconds"]
    table = ENVIRON["work"] "/words"
    width = 1600; left = 74; right = 90; top = 74; em = 14.67
    mel_height = 150; speech_height = 8; sure_height = 42; row_height = 23; gap = 8; below = 48
    for (i = 1; i < 256; ++i) byte[sprintf("%c", i)] = i
    green = "#3f9b4f"; dark = 1052688; orange = 12346112; red = 13107236
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
    ended[words] = $4 ~ /([.?!]|\343\200\202|\357\274[\201\237])["'\)]*$/
}
END {
    span = strips > 1 ? ENVIRON["strip"] : seconds
    scale = (width - left - right) / span # pixels per second
    step = span > 8 ? 1 : span > 2 ? 0.5 : 0.1
    height = top
    next_word = 1
    for (s = 1; s <= strips; ++s) place(s)
    if (height > 32000) { # of the 32,767 that a picture may have
        print "hark plot transcript: " ENVIRON["name"] ": too many words at once for a picture" > "/dev/stderr"
        exit 1
    }
    heading()
    at = top
    for (s = 1; s <= strips; ++s) draw(s)
    if (squares)
        print "hark plot transcript: a square replaces each character that no font here has; on " \
            "Debian, fonts-noto-core and fonts-noto-cjk have most" > "/dev/stderr"
}
