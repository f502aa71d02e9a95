// The tokenizer of a Hugging Face folder as the keys of a GGUF file.
#pragma once

#include <filesystem>

#include "formats/gguf_output.h"
#include "text/tokenizer.h"

namespace hark::models {

// Adds tokenizer.*: the tokens, up to n_vocab of them, with their types, merges or scores, the ids
// of special tokens (the end of a text is `eos` where the tokenizer names none) and the chat
// template. Throws Error for a folder without tokenizer.json, and for a tokenizer that GGUF has no
// name for. Source: ggml's docs/gguf.md, "Tokenizer".
void add_vocabulary(GgufOutput& out, const std::filesystem::path& folder, int64_t n_vocab,
                    const std::vector<int32_t>& eos);

}  // namespace hark::models
