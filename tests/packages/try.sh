# Sourced in a fresh system: what an installed hark must do. `as_user` runs a command as a user who is not root.

fail() { echo "packages.sh: $*" >&2 && exit 1; }

begin_user() {
    useradd --create-home tester
}

as_user() { runuser -u tester -- env -i HOME=/home/tester PATH="$path" LC_ALL=C.UTF-8 "$@"; }

# expect_documents SHARE: man pages, completions and documents of an installation.
expect_documents() {
    local page file
    for page in hark audio-decode hark-transcribe hark-model-get; do
        zcat "$1/man/man1/$page.1.gz" | grep '^\.TH' > /dev/null || fail "$page has no man page"
    done
    for file in bash-completion/completions/hark fish/vendor_completions.d/hark.fish zsh/site-functions/_hark \
        doc/hark/{copyright,sbom.spdx.json,README.md,CHANGELOG.md,docs/packages.md}; do
        [ -s "$1/$file" ] || fail "$1/$file is missing"
    done
}

# try_hark TREE: its version, a sample's text, another format, generated text, the models, and an error.
try_hark() {
    local tree="$1" said
    said="$(as_user hark --version)"
    echo "$said"
    grep -qE '^commit: [0-9a-f]{12}$' <<< "$said" || fail "--version names no commit"
    awk '/^```text$/ { text = 1; next } /^```$/ { text = 0 } text' "$tree/README.md" > /tmp/expected
    [ "$(wc -l < /tmp/expected)" -gt 5 ] || fail "README.md has no text of the sample"
    as_user hark transcribe "$tree/samples/story.mp3" --model demo > /tmp/got
    diff /tmp/expected /tmp/got || fail "the sample's text is another"
    for sample in "$tree"/samples/*.{wav,flac,ogg}; do
        as_user audio-decode "$sample" > /tmp/sound || fail "$sample: cannot be decoded"
        [ "$(wc -c < /tmp/sound)" -gt 10000 ] || fail "$sample: was decoded to nothing"
    done
    as_user sh -c "echo 'Once upon a time' | gpt-generate --model demo --max-tokens 5 --temperature 0" | grep . > /dev/null ||
        fail "no text was generated"
    as_user hark model list | grep demo > /dev/null || fail "the demonstration models are not listed"
    said="$(as_user hark transcribe /nowhere.wav --model demo 2>&1)" && fail "a recording that is not there is no error"
    grep -q /nowhere.wav <<< "$said" || fail "the error does not name the recording: $said"
    said="$(as_user hark advise --model whisper-demo --device cpu --run 2>&1)" && fail "there are no samples, and --run works"
    grep -q 'give --input FILE' <<< "$said" || fail "the error does not name --input: $said"
}
