// Gemma 3, its text model: Gemma 2 with norms of queries and keys, without soft caps, five layers
// of six with a window and a rope of their own. Reference: transformers
// models/gemma3/modeling_gemma3.py.
#include "gpt/families/family.h"
#include "gpt/families/rope_table.h"

namespace hark::gpt {

// They turn by another base, without scaling.
RopeSettings gemma3_window_rope(const ConfigReader& in) {
    RopeSettings rope;
    rope.theta = in.number_or({"rope_local_base_freq", "rope.freq_base_swa"}, 10000);
    if (!in.is_gguf() && in.has({"rope_parameters", nullptr}))
        rope = in.rope(10000, "sliding_attention");
    return rope;
}

namespace {

constexpr double kGemma3Theta = 1e6;

DecoderConfig read_gemma3(const ConfigReader& in) {
    DecoderConfig c = read_gemma(in, "gemma3_text", kGemma3Theta);
    c.qk_norm = QkNorm::head;
    const auto cap = [&](const Key& key) { return static_cast<float>(in.number_or(key, 0)); };
    c.attention_soft_cap = cap({"attn_logit_softcapping", "attn_logit_softcapping"});
    c.logit_soft_cap = cap({"final_logit_softcapping", "final_logit_softcapping"});
    const int64_t window =
        in.size_or({"sliding_window", "attention.sliding_window"}, 1 << 28, 4096);
    if (!set_layer_types(c, in, window)) {
        const int64_t pattern =
            in.size_or({"sliding_window_pattern", "attention.sliding_window_pattern"}, 1024, 6);
        set_layers(c, window, [&](int64_t i) { return (i + 1) % pattern != 0; });
    }
    c.ropes.push_back(rope_table(gemma3_window_rope(in), c.head_dim, c.n_positions, in.where()));
    for (LayerConfig& layer : c.layers) layer.rope = layer.window > 0 ? 1 : 0;
    return c;
}

}  // namespace

extern const Family kGemma3;
const Family kGemma3 = {.model_type = "gemma3_text",
                        .gguf = "gemma3",
                        .read = read_gemma3,
                        .names = kPostNormNames,
                        .rope_theta = kGemma3Theta};

}  // namespace hark::gpt
