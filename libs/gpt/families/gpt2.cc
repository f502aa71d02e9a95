// GPT-2 (Radford et al. 2019). Reference: transformers models/gpt2/modeling_gpt2.py.
#include <cmath>

#include "core/error.h"
#include "core/json/json.h"
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

constexpr PartName kGpt2Names[] = {
    {Part::token_table, "wte.weight"},         {Part::position_table, "wpe.weight"},
    {Part::lm_head, "lm_head.weight"},         {Part::final_norm, "ln_f.weight"},
    {Part::final_norm_bias, "ln_f.bias"},      {Part::attn_norm, "ln_1.weight"},
    {Part::attn_norm_bias, "ln_1.bias"},       {Part::qkv, "attn.c_attn.weight"},
    {Part::qkv_bias, "attn.c_attn.bias"},      {Part::attn_out, "attn.c_proj.weight"},
    {Part::attn_out_bias, "attn.c_proj.bias"}, {Part::mlp_norm, "ln_2.weight"},
    {Part::mlp_norm_bias, "ln_2.bias"},        {Part::up, "mlp.c_fc.weight"},
    {Part::up_bias, "mlp.c_fc.bias"},          {Part::down, "mlp.c_proj.weight"},
    {Part::down_bias, "mlp.c_proj.bias"},
};

void require_default(const ConfigReader& in, const char* key, bool expected) {
    require(in.boolean_or({key, nullptr}, expected) == expected, in.where(), ": '", key,
            "': expected ", expected ? "true" : "false", ", the only supported value");
}

DecoderConfig read_gpt2(const ConfigReader& in) {
    DecoderConfig c;
    c.n_vocab = in.n_vocab();
    c.n_positions = in.size({"n_positions", "context_length"}, 1 << 20);
    c.n_embd = in.size({"n_embd", "embedding_length"}, 1 << 16);
    c.n_layer = in.size({"n_layer", "block_count"}, 1024);
    c.n_head = in.size({"n_head", "attention.head_count"}, 1024);
    c.n_inner = in.size_or({"n_inner", "feed_forward_length"}, 1 << 18, 4 * c.n_embd);
    require(c.n_embd % c.n_head == 0, in.where(), ": expected 'n_head' to divide 'n_embd', ",
            "found ", c.n_head, " and ", c.n_embd);
    const Key epsilon{"layer_norm_epsilon", "attention.layer_norm_epsilon"};
    const double eps = in.number_or(epsilon, 1e-5);
    require(eps > 0 && eps < 1, in.where(), ": '", in.is_gguf() ? epsilon.gguf : epsilon.json,
            "': expected a number between 0 and 1, found ", eps);
    c.norm_eps = static_cast<float>(eps);
    c.activation = read_activation(in, {"activation_function", nullptr}, Activation::gelu_tanh);
    require(c.activation != Activation::silu, in.where(),
            ": 'activation_function': expected gelu_new or gelu, found silu");
    c.tie_word_embeddings =
        !in.has_lm_head().value_or(!in.boolean_or({"tie_word_embeddings", nullptr}, true));
    c.eos_token_ids = in.eos_token_ids(c.n_vocab);
    require_default(in, "scale_attn_weights", true);
    require_default(in, "scale_attn_by_inverse_layer_idx", false);
    require_default(in, "add_cross_attention", false);
    complete_gpt2(c);
    return c;
}

}  // namespace

const char* torch_name(Dtype dtype) {
    return dtype == Dtype::f32 ? "float32" : dtype == Dtype::f16 ? "float16" : "bfloat16";
}

std::string format_config(const DecoderConfig& c, Dtype dtype) {
    nlohmann::ordered_json root = {
        {"architectures", {"GPT2LMHeadModel"}},
        {"model_type", "gpt2"},
        {"activation_function", c.activation == Activation::gelu ? "gelu" : "gelu_new"},
        {"n_positions", c.n_positions},
        {"n_embd", c.n_embd},
        {"n_head", c.n_head},
        {"n_layer", c.n_layer},
        {"n_inner", c.n_inner},
        {"layer_norm_epsilon", c.norm_eps},
        {"vocab_size", c.n_vocab},
        {"torch_dtype", torch_name(dtype)},
        {"tie_word_embeddings", c.tie_word_embeddings}};
    if (!c.eos_token_ids.empty()) {
        root["bos_token_id"] = c.eos_token_ids[0];
        root["eos_token_id"] = c.eos_token_ids[0];
    }
    return root.dump(2) + "\n";
}

void complete_gpt2(DecoderConfig& c) {
    c.n_kv_head = c.n_head;
    c.head_dim = c.n_embd / c.n_head;
    c.attention_scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
    c.layers.assign(static_cast<size_t>(c.n_layer), {});
}

extern const Family kGpt2;
const Family kGpt2 = {.model_type = "gpt2",
                      .gguf = "gpt2",
                      .read = read_gpt2,
                      .names = kGpt2Names,
                      .prefix = "transformer.",
                      .layer_prefix = "h.",
                      .conv1d = true};

}  // namespace hark::gpt
