#!/bin/sh
# man_pages.sh TOOL DIR: writes the man pages of a built tool and of its commands into DIR, from what
# the tool says of itself. `hark model`, `hark advise`, `hark doctor` and `hark help` have none:
# hark-model, hark-advise, hark-doctor and hark do.
set -eu
tool="$1" dir="$2"

# pages NAME WORD...: of the tool with these words, and of its commands.
pages() {
    name="$1"
    shift
    "$tool" "$@" --help-as man > "$dir/$name.1"
    "$tool" "$@" --help-as commands | cut -f 1 | while read -r command; do
        case "$name $command" in
            "hark model" | "hark advise" | "hark doctor" | "hark help") ;;
            *) (pages "$name-$command" "$@" "$command") ;;
        esac
    done
}

pages "$(basename "$tool")"
