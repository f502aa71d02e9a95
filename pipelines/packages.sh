# Sourced by the other scripts: installs Debian packages that are missing, and only those.

# What building, running and testing hark needs on Debian 12 and 13.
hark_packages="g++ cmake ninja-build pkg-config libdnnl-dev libavformat-dev libavcodec-dev
libswresample-dev libavutil-dev libsndfile1-dev libboost-dev libboost-program-options-dev nlohmann-json3-dev
zlib1g-dev libpcre2-dev libutf8proc-dev libsentencepiece-dev libcurl4-openssl-dev libssl-dev
ca-certificates libedit-dev curl jq"
hark_test_packages="libgtest-dev libbenchmark-dev ffmpeg gnuplot-nox groff-base zsh fish libopenmpi-dev
openmpi-bin parallel strace git mold"

# install_packages PACKAGE...: a no-op where all are there; needs root or sudo where they are not.
install_packages() {
    local missing="" package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $package"
    done
    [ -z "$missing" ] && return 0
    [[ "${HARK_OFFLINE:-0}" = 0 ]] || {
        echo "these packages are missing, and HARK_OFFLINE forbids to fetch them:$missing" >&2
        return 1
    }
    local as_root=""
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            echo "these packages are missing, and neither root nor sudo is at hand:$missing" >&2
            return 1
        }
        as_root="sudo"
    fi
    echo "installing:$missing" >&2
    $as_root apt-get update -qq >&2
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        $missing >&2
}
