# Sourced by the scripts that show the comment at their own top as their help.
# shellcheck shell=bash

# help_if_asked ARGUMENT...: answers --help or -h, if it is the first argument, and ends the script.
help_if_asked() {
    case "${1:-}" in
        --help | -h) show_help ;;
    esac
}

show_help() {
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 0
}
