// Gemma 2: norms before and after attention and MLP, soft caps, every other layer with a window.
// Reference: transformers models/gemma2/modeling_gemma2.py.
#include <cmath>

#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

DecoderConfig read_gemma2(const ConfigReader& in) {
    DecoderConfig c = read_gemma(in, "gemma2", kRopeTheta);
    c.attention_soft_cap =
        static_cast<float>(in.number_or({"attn_logit_softcapping", "attn_logit_softcapping"}, 50));
    c.logit_soft_cap = static_cast<float>(
        in.number_or({"final_logit_softcapping", "final_logit_softcapping"}, 30));
    const int64_t window =
        in.size_or({"sliding_window", "attention.sliding_window"}, 1 << 28, 4096);
    if (!set_layer_types(c, in, window))
        set_layers(c, window, [](int64_t i) { return i % 2 == 0; });
    return c;
}

// GGUF has no key for query_pre_attn_scalar: the number of channels of a head, except in the 27B
// models, as llama.cpp has it.
double default_scalar(const DecoderConfig& c) {
    const bool is_27b = c.n_layer == 46 || c.n_layer == 62;
    return static_cast<double>(is_27b ? c.n_embd / c.n_head : c.head_dim);
}

}  // namespace

float gemma_gguf_scale(const DecoderConfig& config) {
    return static_cast<float>(1 / std::sqrt(default_scalar(config)));
}

DecoderConfig read_gemma(const ConfigReader& in, const char* family, double rope_theta) {
    DecoderConfig c = read_llama_like(in, family, {.tied = true, .rope_theta = rope_theta});
    const Key both_ways{"use_bidirectional_attention", nullptr};
    require(!in.has(both_ways) || !in.boolean(both_ways), in.where(),
            ": use_bidirectional_attention: expected false, found true, which is not supported");
    c.activation = read_activation(in, {"hidden_activation", nullptr}, Activation::gelu_tanh);
    c.norm_place = NormPlace::both;
    c.norm_offset = in.is_gguf() ? 0 : 1;  // GGUF stores 1 + w
    c.embedding_scale = std::sqrt(static_cast<float>(c.n_embd));
    const double scalar =
        in.number_or({"query_pre_attn_scalar", nullptr}, in.is_gguf() ? default_scalar(c) : 256);
    c.attention_scale = static_cast<float>(1 / std::sqrt(scalar));
    return c;
}

extern const Family kGemma2;
const Family kGemma2 = {
    .model_type = "gemma2", .gguf = "gemma2", .read = read_gemma2, .names = kPostNormNames};

}  // namespace hark::gpt
