# Completes hark and its tools in fish: `hark --complete` has the candidates.

function __hark_complete
    set -l typed (commandline -ct)
    set -l lines (hark --complete (commandline -opc) "$typed" 2>/dev/null)
    set -q lines[1]; or return
    if set -q lines[2]
        printf '%s\n' $lines[1..-2]
    end
    set -l prefix (string match -r -- '^--[^=]*=' "$typed")
    set -l path (string replace -r -- '^--[^=]*=' '' "$typed")
    switch $lines[-1]
        case ':file'
            printf '%s\n' "$prefix"(__fish_complete_path "$path")
        case ':directory'
            printf '%s\n' "$prefix"(__fish_complete_directories "$path")
    end
end

for tool in hark audio-decode vad mel whisper-transcribe whisper-eval gpt-generate gpt-eval \
    gpt-embed gpt-tokenize gpt-train hark-advise hark-doctor hark-model hark-redact hark-serve hark-shard hark-trace
    complete -c $tool -f -a '(__hark_complete)'
end
