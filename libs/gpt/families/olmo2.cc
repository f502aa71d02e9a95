// OLMo 2: norms after attention and MLP, and over all of a row's queries and keys.
// Reference: transformers models/olmo2/modeling_olmo2.py.
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

constexpr PartName kNames[] = {
    {Part::token_table, "embed_tokens.weight"},
    {Part::lm_head, "lm_head.weight"},
    {Part::final_norm, "norm.weight"},
    {Part::q, "self_attn.q_proj.weight"},
    {Part::q_bias, "self_attn.q_proj.bias"},
    {Part::k, "self_attn.k_proj.weight"},
    {Part::k_bias, "self_attn.k_proj.bias"},
    {Part::v, "self_attn.v_proj.weight"},
    {Part::v_bias, "self_attn.v_proj.bias"},
    {Part::q_norm, "self_attn.q_norm.weight"},
    {Part::k_norm, "self_attn.k_norm.weight"},
    {Part::attn_out, "self_attn.o_proj.weight"},
    {Part::attn_out_bias, "self_attn.o_proj.bias"},
    {Part::attn_post_norm, "post_attention_layernorm.weight"},
    {Part::gate, "mlp.gate_proj.weight"},
    {Part::up, "mlp.up_proj.weight"},
    {Part::down, "mlp.down_proj.weight"},
    {Part::mlp_post_norm, "post_feedforward_layernorm.weight"},
};

DecoderConfig read(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(in, "olmo2", false);
    c.norm_place = NormPlace::after;
    c.qk_norm = QkNorm::row;
    return c;
}

}  // namespace

extern const Family kOlmo2;
const Family kOlmo2 = {.model_type = "olmo2",
                       .gguf = "olmo2",
                       .prefix = "model.",
                       .layer_prefix = "layers.",
                       .names = kNames,
                       .read = read};

}  // namespace hark::gpt
