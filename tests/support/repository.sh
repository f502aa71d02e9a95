# Sourced by tests of scripts that read a history: an empty repository in a new folder, `work`, which is removed at
# the end. `here` is the folder of tests/.
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export HOME="$work" GIT_CONFIG_NOSYSTEM=1
export GIT_{AUTHOR,COMMITTER}_NAME=tester GIT_{AUTHOR,COMMITTER}_EMAIL=tester@localhost
mkdir "$work/tree"
cd "$work/tree"
git init -q .
commit() { git commit -q --allow-empty -m "$1"; }

# set_version VERSION MESSAGE
set_version() {
    echo "project(hark VERSION $1 LANGUAGES C CXX)" > CMakeLists.txt
    git add CMakeLists.txt
    commit "$2"
}
