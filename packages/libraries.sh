#!/usr/bin/env bash
# libraries.sh [-L DIR]... FILE...: the shared libraries that programs load, and that these load: a line for
# each, of NAME, PATH, PACKAGE, VERSION and SOURCE with tabs, by name. Files are looked for in each DIR, then
# in the folders of Debian's libraries for the programs' processor. "-" is what no package says; a DIR that
# is no package's has a file ORIGIN with these three words. A library that is not found is an error.
set -euo pipefail
export LC_ALL=C
folders=()
while [ "$1" = -L ]; do
    folders+=("$2")
    shift 2
done
case "$(readelf -h "$1" | sed -n 's/ *Machine: *//p')" in
    *X86-64) triplet=x86_64-linux-gnu ;;
    AArch64) triplet=aarch64-linux-gnu ;;
    *) echo "libraries.sh: $1: expected a program for x86_64 or aarch64" >&2 && exit 1 ;;
esac
folders+=("/usr/lib/$triplet" "/lib/$triplet" "/usr/$triplet/lib")

needed() { readelf -d "$@" 2> /dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u; }

declare -A path=()
queue=("$@")
while [ ${#queue[@]} -gt 0 ]; do
    mapfile -t names < <(needed "${queue[@]}")
    queue=()
    for name in "${names[@]}"; do
        [ -z "${path[$name]:-}" ] || continue
        for folder in "${folders[@]}"; do
            [ ! -e "$folder/$name" ] || { path[$name]="$folder/$name" && break; }
        done
        [ -n "${path[$name]:-}" ] || { echo "libraries.sh: $name: is not in ${folders[*]}" >&2 && exit 1; }
        queue+=("${path[$name]}")
    done
done

# owner FILE: its package, version and source.
owner() {
    local file="$1" real package form='${Package}\t${Version}\t${source:Package} ${source:Version}\n'
    if [ -e "${file%/*}/ORIGIN" ]; then
        cat "${file%/*}/ORIGIN"
        return
    fi
    real="$(realpath "$file")"
    # The file may be known by its place before /lib became a link to /usr/lib.
    for file in "$real" "${real#/usr}" "$file"; do
        package="$(dpkg-query -S "$file" 2> /dev/null | sed -n '1s/: .*//p')"
        [ -z "$package" ] || { dpkg-query -W -f "$form" "$package" && return; }
    done
    printf -- '-\t-\t-\n'
}

for name in "${!path[@]}"; do
    printf '%s\t%s\t%s\n' "$name" "${path[$name]}" "$(owner "${path[$name]}")"
done | sort
