// gpt-oss 20B and 120B: attention sinks, biases, every other layer with a window, yarn, and
// mixtures of experts with a clamped SwiGLU. Reference: transformers
// models/gpt_oss/modeling_gpt_oss.py.
#include "core/error.h"
#include "gpt/families/family.h"
#include "gpt/families/gpt_oss_tensors.h"
#include "gpt/families/rope_table.h"

namespace hark::gpt {
namespace {

constexpr double kGptOssTheta = 150000;

// The experts' names are those of GptOssTensors: a file stacks experts.
constexpr PartName kGptOssNames[] = {
    {Part::router, "mlp.router.weight"},
    {Part::router_bias, "mlp.router.bias"},
    {Part::expert_gate_bias, "mlp.experts.{}.gate_proj.bias"},
    {Part::expert_up_bias, "mlp.experts.{}.up_proj.bias"},
    {Part::expert_down_bias, "mlp.experts.{}.down_proj.bias"},
};
constexpr PartName kGptOssGgufNames[] = {{Part::mlp_norm, "post_attention_norm.weight"}};

DecoderConfig read_gpt_oss(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(
        in, "gpt_oss", {.n_kv_head = 8, .rope_theta = kGptOssTheta, .norm_eps = 1e-5});
    c.qkv_bias = c.attn_out_bias = c.attention_sinks = true;
    // GGUF has no key for it. The model was trained with borders that are not whole numbers.
    RopeSettings rope = in.rope(kGptOssTheta);
    if (in.is_gguf()) rope.truncate = false;
    c.ropes = {rope_table(rope, c.head_dim, c.n_positions, in.where())};
    const int64_t window = in.size_or({"sliding_window", "attention.sliding_window"}, 1 << 28, 128);
    if (!set_layer_types(c, in, window))
        set_layers(c, window, [](int64_t i) { return i % 2 == 0; });
    set_experts(c, in, "num_local_experts", "intermediate_size");
    c.experts.bias = true;
    c.experts.swiglu_slope = 1.702f;
    const double limit = in.number_or({"swiglu_limit", nullptr}, 7);
    require(limit > 0 && limit <= 1e6, in.where(),
            ": 'swiglu_limit': expected a number above 0 and at most 1e6, found ", limit);
    c.experts.swiglu_limit = static_cast<float>(limit);
    return c;
}

}  // namespace

extern const Family kGptOss;
const Family kGptOss = {.model_type = "gpt_oss",
                        .gguf = "gpt-oss",
                        .read = read_gpt_oss,
                        .names = kGptOssNames,
                        .gguf_names = kGptOssGgufNames,
                        .rope_theta = kGptOssTheta,
                        .unpack = unpack_gpt_oss};

}  // namespace hark::gpt
