// The tokenizer of a GGUF file as the files of a Hugging Face folder.
#pragma once

#include <filesystem>

#include "formats/gguf.h"
#include "text/tokenizer.h"

namespace hark::models {

// Writes tokenizer.json, and tokenizer_config.json with the names of special tokens, the context's
// length and the chat template. `tokens`: that of the file. Throws Error for a tokenizer that
// tokenizer.json has no place for.
void write_vocabulary(const GgufFile& file, const hark::Tokenizer& tokens, int64_t n_positions,
                      const std::filesystem::path& directory);

}  // namespace hark::models
