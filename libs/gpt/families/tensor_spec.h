// The tensors of a model's checkpoint: one list, which loading, verifying, converting, training and
// sharding read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor_source.h"
#include "gpt/families/config.h"

namespace hark::gpt {

// The place of a tensor in the decoder. Those up to final_norm_bias are once in a model, the others
// once in each layer or in each of its experts.
enum class Part {
    token_table,
    position_table,
    lm_head,
    final_norm,
    final_norm_bias,
    attn_norm,  // before attention
    attn_norm_bias,
    qkv,  // q, k and v in one tensor
    qkv_bias,
    q,
    q_bias,
    k,
    k_bias,
    v,
    v_bias,
    q_norm,
    k_norm,
    attn_out,
    attn_out_bias,
    sinks,  // a logit per head
    q_a,    // of latent attention, as DeepSeek names them
    q_a_norm,
    q_b,
    kv_a,
    kv_a_norm,
    kv_b,
    k_b,             // once in each head: a part of kv_b, turned
    v_b,             // once in each head
    attn_post_norm,  // after attention
    mlp_norm,        // before the MLP
    mlp_norm_bias,
    gate_up,  // gate and up in one tensor
    gate,
    up,
    up_bias,
    down,
    down_bias,
    mlp_post_norm,  // after the MLP
    router,         // of a mixture of experts
    router_bias,
    router_correction,  // added to the scores for the choice
    shared_gate,        // of the experts that compute every token, as one MLP
    shared_up,
    shared_down,
    expert_gate,  // these are once in each expert
    expert_gate_bias,
    expert_up,
    expert_up_bias,
    expert_down,
    expert_down_bias,
};

struct TensorSpec {
    Part part;
    int64_t layer = -1;   // -1: once in the model
    int64_t expert = -1;  // or the head that has it; -1: of none
    std::string name;     // in a Hugging Face checkpoint, without the family's prefix
    // In a GGUF file, "blk.3.attn_q.weight"; of an expert or head: the tensor that stacks
    // `stacked`.
    std::string gguf;
    int64_t stacked = 0;
    int64_t rows = 0;     // (out) or the length of a vector
    int64_t columns = 0;  // (in); 0: a vector
    bool in_out = false;  // transformers' Conv1D: that file has it (in, out)

    // Whether it takes the type of the weights: vectors and positions are always f32.
    bool is_matrix() const { return columns > 0 && part != Part::position_table; }
    // Whether it is the weights of a norm that DecoderConfig::norm_offset is added to.
    bool is_norm() const;
};

// All tensors of a model, its tables first, then layer by layer, then the last norm.
std::vector<TensorSpec> tensor_specs(const DecoderConfig& config);

// The tensor, valid as TensorSource::take() says. is_turned: the source has it (in, out).
Tensor take(TensorSource& source, const TensorSpec& spec);
bool is_turned(const TensorSource& source, const TensorSpec& spec);

}  // namespace hark::gpt
