// A byte-level vocabulary as Hugging Face's tokenizer files.
#pragma once

#include <filesystem>
#include <string>

#include "text/bpe.h"

namespace hark {

// Writes tokenizer.json, vocab.json, merges.txt and tokenizer_config.json, and added_tokens.json
// if there are special tokens other than <|endoftext|>, each whole or not at all. `tokenizer_class`
// is transformers' name for the kind: "GPT2TokenizerFast", "WhisperTokenizer". Throws Error naming
// a file that cannot be written.
void write_hugging_face(const Bpe& bpe, const std::string& tokenizer_class,
                        const std::filesystem::path& directory);

}  // namespace hark
