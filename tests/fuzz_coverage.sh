#!/usr/bin/env bash
# Usage: tests/fuzz_coverage.sh [SECONDS [BUILD]]: runs every fuzz target for SECONDS (30) and prints,
# for each reader of bytes from outside how many of its lines they executed, as docs/development.md
# has it. BUILD (build-coverage) is a build of its own, by g++ and without the sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-30}"
build="${2:-build-coverage}"
[[ "$seconds" =~ ^[1-9][0-9]*$ ]] || {
    echo "fuzz_coverage.sh: SECONDS: expected a number (got '$seconds')" >&2
    exit 2
}
names="$(basename -s .cc -a tests/fuzz/fuzz_*.cc | sed 's/^fuzz_//')"
cmake --preset cpu-asan -B "$build" -DHARK_COVERAGE=ON -DHARK_BUILD_TESTS=ON \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O0 -DNDEBUG" > /dev/null
cmake --build "$build" -j "$(nproc)" --target fuzz_readers
find "$build" -name '*.gcda' -delete
printf '%s\n' $names | BUILD="$build" SECONDS_EACH="$seconds" xargs -P "$(nproc)" -I NAME sh -c '
    corpus=tests/fuzz/corpus/NAME
    [ -d "$corpus" ] || corpus=
    "$BUILD"/tests/fuzz_readers NAME --seconds "$SECONDS_EACH" --crash "$BUILD"/fuzz/NAME/crash $corpus 2>&1 |
        sed "s/^/NAME: /" >&2
    ! [ -e "$BUILD"/fuzz/NAME/crash ]'

# Reader: regular expression of its sources, without ".cc"; a source belongs to the first that fits.
readers='audio: libs/audio/(pcm|raw|wav)
settings and JSON: libs/core/(json|cli/settings)
transcripts: libs/eval/transcripts
safetensors and tensor streams: libs/formats/(recordings|safetensors|tensor_stream)
GGUF and ggml: libs/formats/(ggml|gguf|gguf_parts)
torch.save: libs/formats/(pickle|stored_zip|torch_file)
packed matrices: libs/(formats/packed/[a-z0-9_]+|gpt/families/(compressed_config|quantization|widened_tensors))
prompts: libs/gpt/(answers/(prompts|request)|sampling/sampler_settings)
prompt cache: libs/gpt/engine/prompt_cache
questions: libs/gpt/eval/(hellaswag|questions)
language models: libs/gpt/families/[a-z0-9_]+
answers of servers: libs/hub/(http_address|http_headers|repository)
redaction: libs/operations/redact/[a-z_]+
lists of recordings: libs/operations/shards/(inputs|lhotse|manifest|result|tar|webdataset)
requests of the server: libs/serve/(web/(connection|form|paths|socket_connection)|openai/(fields|requests|transcripts))
Silero: libs/speech/silero_file
token files: libs/text/token_file
vocabularies: libs/text/bpe_(file|gguf|hugging_face|tiktoken|token_list)
chat templates: libs/text/(chat_messages|chat_template|chat_template_folder|jinja/[a-z_]+)
tokenizers: libs/text/(regex|tokenizer/[a-z_]+)
Whisper models: libs/(formats/ctranslate2|whisper/model/(alignment_heads|config|ctranslate2_file|ctranslate2_tensors|ggml_file|model_file|openai_file|tokenizer))'
find "$build" -name '*.gcda' -exec gcov -n -r -s "$PWD" {} + 2> /dev/null |
    readers="$readers" awk -F "'|:|% of " '
        BEGIN {
            n = split(ENVIRON["readers"], reader, "\n")
            for (i = 1; i <= n; ++i) {
                split(reader[i], part, ": ")
                name[i] = part[1]
                sources[i] = "^" part[2] "[.]cc$"
            }
        }
        /^File/ { file = $2 }
        # These write, are constants, or take what the readers have read.
        file ~ "families/(gguf_types|model_choice|model_folder|published_shapes|tensor_slices)[.]cc$" { next }
        file ~ "redact/(mute_list|redact_options)[.]cc$" { next }
        /^Lines executed/ {
            for (i = 1; i <= n; ++i) {
                if (file !~ sources[i]) continue
                lines[i] += $3; covered[i] += $2 * $3 / 100
                if ($2 >= 90) break
                sub(".*/", "", file)
                below[i] = below[i] (below[i] ? ", " : "") file " " int($2)
                break
            }
            file = ""
        }
        END {
            print "| reader | lines | covered, % | files below 90% |"
            print "|---|---|---|---|"
            for (i = 1; i <= n; ++i)
                printf "| %s | %d | %.1f | %s |\n", name[i], lines[i], 100 * covered[i] / lines[i], below[i]
        }'
