#!/usr/bin/env bash
# cli.sh BIN_DIR: writes docs/cli.md to stdout, from what the tools in BIN_DIR say of themselves.
set -euo pipefail
PATH="$(cd "$1" && pwd):$PATH"
tools=(audio-decode vad mel whisper-transcribe whisper-eval gpt-generate gpt-eval gpt-embed gpt-tokenize gpt-train hark-serve hark-advise hark-doctor hark-redact)
mapfile -t commands < <(hark --help-as commands | cut -f 1 | grep -vE '^(model|advise|doctor|plot|help)$')
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# all_tools: each tool and command with options of its own, a line each.
all_tools() {
    printf '%s\n' "${tools[@]}"
    for tool in hark-model hark-shard hark-trace; do
        $tool --help-as commands | sed "s/\t.*//; s/^/$tool /"
    done
    printf 'hark %s\n' "${commands[@]}"
    hark plot --help-as commands | sed 's/\t.*//; s/^/hark plot /'
}

# The tool, then the fields of its table; of a command, its own options alone.
while IFS= read -r tool; do
    $tool --help-as names > "$work/names"
    $tool --help-as table | awk -F '\t' -v tool="$tool" '
        FILENAME == ARGV[1] { own[$1]; next } $1 in own { print tool "\t" $0 }' "$work/names" -
done < <(all_tools) > "$work/rows"

cat <<'END'
# Options

Every option of every tool, made from the tools themselves by `docs/cli.sh`; a test compares. A meaning without a
tool's name is that of all tools that have the option. If the table names tools before a meaning, that meaning is
theirs alone: the values differ (`--format`), what is counted (`--batch-size`) or what it applies to (`--dtype`).
`TOOL --help` shows the most important options, `TOOL --help-all` and `man TOOL` all. Help texts of tools and commands
have 79 columns at most, and are the same on a narrower terminal.

The command line comes first, then `--config FILE`, then the environment (`HARK_` and the option in capitals, such as
`HARK_DEVICE`), then `~/.config/hark/config`. An empty variable stands for the option's default, whatever the
configuration says.

## All tools have

`hark search` has no `-q`, `-v` and `--config`.

END
mel --help-as table | awk -F '\t' '$1 ~ /^(quiet|verbose|config|help|help-all|version)$/ {
    print "- `" ($2 == "-" ? "" : "-" $2 ", ") "--" $1 ($3 == "-" ? "" : " " $3) "`: " $7 }'
cat <<'END'

## By name

| option | meaning | tools |
|---|---|---|
END
awk -F '\t' '
    $2 ~ /^(quiet|verbose|config|help|help-all|version|-)$/ { next }
    !($2 in form) { form[$2] = ($3 == "-" ? "" : "-" $3 ", ") "--" $2 ($4 == "-" ? "" : " " $4) }
    { tools[$2] = tools[$2] (tools[$2] == "" ? "" : ", ") $1 }
    !(($2, $8) in having) { helps[$2, ++count[$2]] = $8 }
    { having[$2, $8] = having[$2, $8] (having[$2, $8] == "" ? "" : ", ") $1 }
    END {
        for (name in form) {
            # Where tools describe it in different words, each is named.
            meaning = count[name] == 1 ? helps[name, 1] : ""
            for (i = 1; count[name] > 1 && i <= count[name]; ++i)
                meaning = meaning (i > 1 ? "; " : "") having[name, helps[name, i]] ": " helps[name, i]
            print name "\t| `" escape(form[name]) "` | " escape(meaning) " | " tools[name] " |"
        }
    }
    function escape(text) { gsub(/[|]/, "\\|", text); return text }' "$work/rows" | LC_ALL=C sort -k 1,1 | cut -f 2

echo
echo "## By tool"
echo
while IFS= read -r tool; do
    $tool --help-as markdown
done < <(all_tools) | sed '$d'
