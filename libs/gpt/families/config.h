// The shape of a GPT-2 model, from its directory's config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ops.h"

namespace hark::gpt {

// Names as in transformers' GPT2Config.
struct Config {
    int64_t n_vocab = 0;      // vocab_size: rows of the token table, often padded
    int64_t n_positions = 0;  // the context, in tokens
    int64_t n_embd = 0;       // channels C
    int64_t n_layer = 0;
    int64_t n_head = 0;
    int64_t n_inner = 0;  // hidden channels of a block's MLP
    float layer_norm_epsilon = 1e-5f;
    Activation activation = Activation::gelu_tanh;
    bool tie_word_embeddings = true;     // the output's weights are the token table
    std::vector<int32_t> eos_token_ids;  // ids that end a text
};

// Reads DIR/config.json. Throws Error naming the file and the key: missing, of another type, out of
// range, heads that do not divide the channels, a model that is not GPT-2, an option of GPT2Config
// that changes the arithmetic and is not supported.
Config load_config(const std::filesystem::path& directory);
// The same from text that has been read; `where` names it in messages.
Config parse_config(std::string_view text, const std::string& where);
// The text of a config.json that transformers reads; `dtype`: of the weights, f32, f16 or bf16.
std::string format_config(const Config& config, Dtype dtype);

}  // namespace hark::gpt
