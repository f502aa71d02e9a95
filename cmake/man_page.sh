#!/bin/sh
# man_page.sh TOOL: a man page of a built tool, made from its own --help and --version, and from the
# --help of each of its commands where it has some.
set -eu
tool="$1"
name="$(basename "$tool")"
version="$("$tool" --version | sed 's/.* //')"
# Each command's help begins with a form feed.
helps() {
    "$tool" --help
    "$tool" --help | awk -v name="$name" '
        NR == 1 && $3 != "COMMAND" { exit }
        $1 == name && !seen[$2]++ && $2 ~ /^[a-z]+$/ { print $2 }' |
        while read -r command; do
            printf '\f\n'
            "$tool" "$command" --help
        done
}
helps | awk -v name="$name" -v version="$version" '
    function roff(text) {
        gsub(/\\/, "\\e", text)
        gsub(/-/, "\\-", text)
        if (text ~ /^[.\047]/) text = "\\&" text
        return text
    }
    BEGIN { section = "usage" }
    NR == 1 { usage = substr($0, 8); next }
    NR == 2 {
        printf ".TH %s 1 \"\" \"hark %s\" \"User Commands\"\n", toupper(roff(name)), version
        first = $0
        sub(/\.$/, "", first)
        printf ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n\\fB%s\\fR%s\n", roff(name), roff(first), \
            roff(name), roff(substr(usage, length(name) + 1))
        printf ".SH DESCRIPTION\n%s\n", roff($0)
        next
    }
    /^\f$/ { if (section != "command") print ".SH COMMANDS"; section = "command"; next }
    section == "command" && /^Usage: / { printf ".SS %s\n", roff(substr($0, 8)); next }
    section == "command" && /^Options:$/ { next }
    section == "command" && !/^ / { print $0 == "" ? ".PP" : roff($0); next }
    /^Options:$/ { print ".SH OPTIONS"; section = "options"; next }
    section == "usage" { print $0 == "" ? ".PP" : roff($0); next }
    # A flag, its argument in capitals, then the help, which continues in the lines below.
    /^  --/ {
        line = substr($0, 3)
        match(line, /^--[a-z-]+( [A-Z][A-Z|,.:]*)?/)
        flag = substr(line, 1, RLENGTH)
        text = substr(line, RLENGTH + 1)
        sub(/^ +/, "", text)
        printf ".TP\n.B %s\n", roff(flag)
        if (text != "") print roff(text)
        next
    }
    /^ +/ { sub(/^ +/, ""); print roff($0) }
    END {
        print ".SH EXIT STATUS"
        print "0 where all input was processed and all output written; 1 where the run or any one"
        print "recording failed; 2 where the command line was wrong."
        print ".SH SEE ALSO"
        count = split("audio-decode vad mel whisper-transcribe whisper-eval gpt-tokenize gpt-train gpt-generate hark-model", tools, " ")
        for (i = 1; i <= count; i++)
            if (tools[i] != name) others = others (others ? " (1),\n" : "") ".BR " roff(tools[i])
        print others " (1)"
    }'
