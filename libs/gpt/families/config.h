// The shape of a decoder-only language model. A family (families/llama.cc ...) makes it from a
// config.json or from GGUF keys; loading and the forward pass read nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ops.h"

namespace hark::gpt {

// Where a block's norms are: before attention and MLP, after them, or both (Gemma 2).
enum class NormPlace { before, after, both };

// Norms of queries and keys: none, one per head, or one over all heads' channels (OLMo 2).
enum class QkNorm { none, head, row };

// Rotary positions that layers share: inverse frequencies, the first half of the rotated channels.
struct RopeTable {
    std::vector<float> frequencies;
    float scale = 1;  // of cosine and sine
    // longrope: sequences of more than `original_length` tokens have these; empty: none.
    std::vector<float> long_frequencies;
    int64_t original_length = 0;

    bool operator==(const RopeTable&) const = default;
};

// What differs from layer to layer.
struct LayerConfig {
    int rope = -1;             // in DecoderConfig::ropes; -1: no rotary positions
    int64_t window = 0;        // keys that a query sees; 0: all
    bool has_experts = false;  // instead of an MLP
};

// The mixtures of experts of the layers that have one.
struct ExpertConfig {
    int64_t count = 0;       // experts per layer; 0: no layer has any
    int64_t per_token = 0;   // experts that compute a token
    int64_t n_inner = 0;     // hidden channels of an expert
    bool normalized = true;  // the weights of a token's experts have the sum 1
    bool bias = false;       // of the router and of the experts
    // As in Routing; whether a bias corrects the scores for the choice.
    bool sigmoid = false, corrected = false;
    int64_t groups = 1, kept_groups = 1;
    float scale = 1;
    int64_t n_shared_inner = 0;  // hidden channels of the experts that compute every token
    // gpt-oss's activation (clamped_swiglu); limit 0: DecoderConfig::activation.
    float swiglu_slope = 0, swiglu_limit = 0;
};

// Latent attention (DeepSeek-V2, section 2.1): keys and values of all heads are products of one row
// per token, which the cache keeps.
struct LatentConfig {
    int64_t channels = 0;    // of that row, without those of positions; 0: no latent attention
    int64_t rotary = 0;      // channels with positions: of that row, and of each head's query
    int64_t plain = 0;       // channels of a head's queries and keys without positions
    int64_t value = 0;       // channels of a head's values
    int64_t query_rank = 0;  // queries are made of a row of so few channels; 0: of x
    static constexpr float kNormEps = 1e-6f;  // of the norms of both rows, in all models
    // The file has the products of keys, turned, and of values apart, and head by head.
    bool by_head = false;
};

struct DecoderConfig {
    std::string family = "gpt2";  // model_type
    int64_t n_vocab = 0;          // rows of the token table, often padded
    int64_t n_positions = 0;      // the context, in tokens
    int64_t n_embd = 0;           // channels C
    int64_t n_layer = 0;
    int64_t n_head = 0;
    int64_t n_kv_head = 0;
    int64_t head_dim = 0;  // channels per head D, as attention() has them
    int64_t n_inner = 0;   // hidden channels of a block's MLP
    NormKind norm = NormKind::layer;
    float norm_eps = 1e-5f;
    float norm_offset = 0;  // added to the norms' stored weights: Gemma's 1
    NormPlace norm_place = NormPlace::before;
    QkNorm qk_norm = QkNorm::none;
    Activation activation = Activation::gelu_tanh;
    bool gated_mlp = false;  // down(f(gate(x)) * up(x)), else down(f(up(x)))
    bool qkv_bias = true, attn_out_bias = true, mlp_bias = true;
    bool fused_qkv = true;          // one tensor of the file; its rows are q, k, v
    bool fused_gate_up = false;     // one tensor of the file; its rows are gate, up
    bool learned_positions = true;  // a table of positions is added to the embedding
    float attention_scale = 0;      // of the scores: 1 / sqrt(D) in most families
    float attention_soft_cap = 0;   // 0: none
    bool attention_sinks = false;   // a further logit of each head's softmax
    float embedding_scale = 1;      // of the token embedding
    float residual_scale = 1;       // of what is added to the residual stream
    float logit_scale = 1, logit_soft_cap = 0;
    bool tie_word_embeddings = true;  // the output's weights are the token table
    ExpertConfig experts;
    LatentConfig latent;
    std::vector<RopeTable> ropes;
    std::vector<LayerConfig> layers;     // n_layer
    std::vector<int32_t> eos_token_ids;  // ids that end a text

    // Whether long sequences have another table of rotary positions.
    bool has_longrope() const {
        return std::any_of(ropes.begin(), ropes.end(),
                           [](const RopeTable& rope) { return !rope.long_frequencies.empty(); });
    }
    int64_t kv_width() const { return n_kv_head * head_dim; }
    int64_t q_width() const { return n_head * head_dim; }
    bool is_latent() const { return latent.channels > 0; }
    // Numbers that the cache keeps of a token in a layer.
    int64_t cache_width() const { return (is_latent() ? 1 : 2) * kv_width(); }
};

// Reads DIR/config.json, and the ids that end a text from DIR/generation_config.json too. Throws
// Error naming the file and the key: missing, of another type, out of range, a model that is of no
// known family, an option that changes the arithmetic and is not supported.
DecoderConfig load_config(const std::filesystem::path& directory);
// The same from text that has been read; `where` names it in messages.
DecoderConfig parse_config(std::string_view text, const std::string& where);

// The text of a GPT-2's config.json that transformers reads; `dtype`: of the weights, f32, f16 or
// bf16.
std::string format_config(const DecoderConfig& config, Dtype dtype);
// transformers' name of a type, "bfloat16".
const char* torch_name(Dtype dtype);
// Sets what follows from GPT-2's other settings: heads, scale, layers.
void complete_gpt2(DecoderConfig& config);

}  // namespace hark::gpt
