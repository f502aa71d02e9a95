// How a model's publisher makes one vector of a text from it, as its files say.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "formats/gguf.h"

namespace hark::gpt {

// Which of the final norm's outputs are a text's vector.
enum class Pooling { last_token, first_token, mean };

struct EmbeddingSettings {
    Pooling pooling = Pooling::last_token;
    int64_t longest = 0;  // tokens of a text, at most; 0: as many as the model has positions
    // Instructions that are put before a text, by name ("query"), and the name of the one that is
    // put there if none is asked for; empty: none.
    std::map<std::string, std::string> prompts;
    std::string default_prompt;

    // Tokens of a text, at most, for a model with that many positions.
    int64_t longest_of(int64_t positions) const {
        return longest > 0 ? std::min(longest, positions) : positions;
    }
};

// From sentence-transformers' files: modules.json, the configuration of its pooling,
// sentence_bert_config.json, config_sentence_transformers.json. Without them the last token's
// output. Throws Error naming the file: a module or a pooling that is not supported.
// Source: sentence-transformers 5, models/Pooling.py, SentenceTransformer.py.
EmbeddingSettings read_embedding_settings(const std::filesystem::path& directory);
// These files, as far as the folder has them: paths in it. Throws Error as above.
std::vector<std::string> embedding_files(const std::filesystem::path& directory);
// Writes modules.json and 1_Pooling/config.json, for vectors of `channels` numbers and length 1.
void write_embedding_files(const std::filesystem::path& directory, Pooling pooling,
                           int64_t channels);
// From the key ARCHITECTURE.pooling_type. Source: llama.cpp include/llama.h (llama_pooling_type).
EmbeddingSettings embedding_settings_of(const GgufFile& file);
// The key's value.
int64_t gguf_pooling_type(Pooling pooling);

}  // namespace hark::gpt
