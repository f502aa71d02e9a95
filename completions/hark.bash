# Completes hark and its tools in bash: `hark --complete` has the candidates.

_hark() {
    local word words=() lines files prefix=""
    # bash breaks words at = too: --format=srt is three.
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [ ${#words[@]} -gt 0 ] && { [ "$word" = "=" ] || [[ "${words[-1]}" == --*= ]]; }; then
            words[-1]+="$word"
        else
            words+=("$word")
        fi
    done
    [[ "${words[-1]}" != --*=* ]] || prefix="${words[-1]%%=*}="
    mapfile -t lines < <(hark --complete "${words[@]}" 2> /dev/null)
    [ ${#lines[@]} -gt 0 ] || return
    files="${lines[-1]}"
    unset 'lines[-1]'
    COMPREPLY=()
    for word in "${lines[@]}"; do
        word="${word%%$'\t'*}"
        COMPREPLY+=("${word#"$prefix"}")
    done
    word="${words[-1]#"$prefix"}"
    case "$files" in
        :file) compopt -o filenames && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word") ;;
        :directory) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    esac
}

complete -F _hark hark audio-decode vad mel whisper-transcribe whisper-eval gpt-generate gpt-eval \
    gpt-embed gpt-tokenize gpt-train hark-advise hark-doctor hark-model hark-redact hark-serve hark-shard hark-trace
