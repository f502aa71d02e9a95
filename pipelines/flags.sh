# Sourced by the commands that pass flags on to the tools of their pipe, and that print it.
# shellcheck shell=bash disable=SC2034

declare -A flag_owner=() # of a flag, --model or -m: the tool that has it
declare -A flag_value=() # whether it takes a value: yes, or not set
declare -A flag_name=()  # its long name: --model
declare -A flag_choices=() # the values that it takes, with commas; -: not a list
declare -A flag_completes=() # by long name: what its value is, as shells complete it

# learn_flags TOOL...: reads the flags of the tools. A flag that several have is the first tool's.
learn_flags() {
    local tool name letter metavar is_switch completes choices help word
    for tool in "$@"; do
        while IFS=$'\t' read -r name letter metavar is_switch completes choices help; do
            [ "$name" != check ] || continue # of the tool alone
            flag_completes[--$name]="${flag_completes[--$name]:-$completes}"
            word="--no-$name"
            [ "$is_switch" = - ] || [ -n "${flag_owner[$word]:-}" ] ||
                flag_owner[$word]="$tool" flag_name[$word]="$word"
            for word in "--$name" "-${letter#-}"; do
                [ "$word" != - ] && [ -z "${flag_owner[$word]:-}" ] || continue
                flag_owner[$word]="$tool" flag_name[$word]="--$name"
                [ "$metavar" = - ] || flag_value[$word]=yes
                flag_choices[$word]="$choices"
            done
        done < <("$tool" --help-as table < /dev/null)
    done
}

# learn_own_flags FLAG...: take_flag knows these flags of the command itself. They take a value.
learn_own_flags() {
    local word
    for word in "$@"; do
        flag_owner[$word]="$script" flag_name[$word]="$word" flag_value[$word]=yes
    done
}

# take_flag ARGUMENT...: the first one is a flag: sets `flag`, its long name; `value`, what it was
# given; `owner`, its tool; and `words`, the arguments that it takes. Returns 1 if no tool has it.
take_flag() {
    local word="$1"
    value="" words=("$1")
    if [[ "$word" == --*=* ]]; then
        value="${word#*=}" word="${word%%=*}"
    elif [[ "$word" == -[!-]?* && -n "${flag_value[${word:0:2}]:-}" ]]; then
        value="${word:2}" word="${word:0:2}"
    elif [ -n "${flag_value[$word]:-}" ]; then
        [ $# -ge 2 ] || wrong "$word: expected a value"
        value="$2" words=("$1" "$2")
    fi
    flag="${flag_name[$word]:-}" owner="${flag_owner[$word]:-}"
    [ -n "$flag" ]
}

# refuse_flag ARGUMENT: ends the command, which has no such flag, and proposes the nearest one.
refuse_flag() {
    local word="${1%%=*}" near
    [ ! -e "$1" ] || wrong "unknown option '$1'; for the file of that name write ./$1"
    near="$(nearest_flag "$word")"
    wrong "unknown option '$word'${near:+; did you mean '$near'?}"
}

# check_number TEXT FLAG WHAT: is empty or above 0.
check_number() {
    [[ "$1" =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)?$ && "$1" != [0.] && ! "$1" =~ ^0+\.?0*$ ]] ||
        wrong "$2: expected $3, got '$1'"
}

# nearest_flag WORD: the command's flag that WORD most likely stands for (core/cli/suggest.h), or nothing.
nearest_flag() {
    local known
    mapfile -t known < <({
        printf '%s\n' "${!flag_name[@]}"
        sed -n '2,/^[^#]/s/^#  *\(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/p' "$0"
    } | grep '^--' | LC_ALL=C sort -u)
    hark --nearest "$1" "${known[@]}"
}

# quoted WORD...: the words as a shell reads them.
quoted() {
    local word text=""
    for word in "$@"; do
        if [[ "$word" =~ ^[A-Za-z0-9_./:=,+@%-]+$ ]]; then
            text+=" $word"
        else
            text+=" '${word//\'/\'\\\'\'}'"
        fi
    done
    printf '%s' "${text# }"
}

# show_stages STAGE...: prints a pipe, whose stages are quoted, as one line.
show_stages() {
    local stage text=""
    for stage in "$@"; do text+=" | $stage"; done
    printf '%s\n' "${text# | }"
}
