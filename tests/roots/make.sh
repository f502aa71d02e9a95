# Sourced by tests that run in another system's root folder.

# make_root FOLDER SUITE VARIANT [PACKAGE...]: Debian's SUITE in FOLDER, of mmdebstrap's VARIANT and with more packages,
# unless it is there already. Needs root.
make_root() {
    local folder="$1" suite="$2" variant="$3" packages spec
    shift 3
    spec="$suite $variant $*"
    [ "$(cat "$folder/made" 2> /dev/null)" != "$spec" ] || return 0
    install_packages mmdebstrap
    rm -rf "$folder"
    packages="$*"
    mmdebstrap --quiet --variant="$variant" ${packages:+--include="${packages// /,}"} "$suite" "$folder"
    echo "$spec" > "$folder/made"
}
