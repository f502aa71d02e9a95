# Sourced by tests that run in another system's root folder.

# make_root FOLDER SUITE VARIANT [PACKAGE...]: Debian's SUITE in FOLDER, of mmdebstrap's VARIANT and with more packages,
# unless it is there already. SUITE may name architectures, of which programs are the first's: bookworm:amd64,arm64.
# Needs root.
make_root() {
    local folder="$1" suite="$2" variant="$3" packages spec architectures=""
    shift 3
    spec="$suite $variant $*"
    [ "$(cat "$folder/made" 2> /dev/null)" != "$spec" ] || return 0
    [[ "$suite" != *:* ]] || architectures="${suite#*:}"
    install_packages mmdebstrap
    rm -rf "$folder"
    packages="$*"
    mmdebstrap --quiet --variant="$variant" ${packages:+--include="${packages// /,}"} \
        ${architectures:+--architectures="$architectures"} "${suite%%:*}" "$folder"
    echo "$spec" > "$folder/made"
}
