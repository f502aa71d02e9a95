// Models of the families in GGUF, as llama.cpp's converter writes them.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "gpt/families/tensor_spec.h"
#include "support/gguf_writer.h"

namespace hark::test {

struct GgufCase {
    const char *name, *architecture;  // the golden case; general.architecture
    bool interleaved, is_gemma;
};

// The rows of q or k as llama.cpp's converter orders them: the halves of a head, in turn.
inline std::vector<float> interleave(const std::vector<float>& rows, int64_t heads,
                                     int64_t columns) {
    const int64_t d = std::ssize(rows) / columns / heads;
    std::vector<float> turned(rows.size());
    for (int64_t h = 0; h < heads; ++h)
        for (int64_t j = 0; j < d; ++j)
            std::copy_n(rows.begin() + (h * d + j / 2 + j % 2 * (d / 2)) * columns, columns,
                        turned.begin() + (h * d + j) * columns);
    return turned;
}

inline bool has_yarn(std::string_view family) { return family == "gpt_oss" || family == "olmo3"; }

inline void add_keys(GgufWriter& out, const GgufCase& of, const gpt::DecoderConfig& c) {
    const auto key = [&](const char* name) { return concat(of.architecture, ".", name); };
    const auto number = [&](const char* name, int64_t value) {
        out.u32(key(name), static_cast<uint32_t>(value));
    };
    out.text("general.architecture", of.architecture);
    number("context_length", c.n_positions);
    number("embedding_length", c.n_embd);
    number("block_count", c.n_layer);
    number("attention.head_count", c.n_head);
    number("attention.head_count_kv", c.n_kv_head);
    number("attention.key_length", c.head_dim);
    number("feed_forward_length", c.n_inner);
    out.f32(key("attention.layer_norm_rms_epsilon"), c.norm_eps);
    out.f32(key("rope.freq_base"), 10000.0f);
    if (of.is_gemma) {
        number("attention.sliding_window", 8);
        out.f32(key("attn_logit_softcapping"), 50.0f);
        out.f32(key("final_logit_softcapping"), 30.0f);
    }
    if (c.experts.count > 0) {
        number("expert_count", c.experts.count);
        number("expert_used_count", c.experts.per_token);
        if (c.family != "mixtral") number("expert_feed_forward_length", c.experts.n_inner);
    }
    if (c.family == "olmo3") {
        std::vector<bool> slides;
        for (const gpt::LayerConfig& layer : c.layers) slides.push_back(layer.window > 0);
        out.booleans(key("attention.sliding_window_pattern"), slides);
    }
    if (!has_yarn(c.family)) return;
    number("attention.sliding_window", 8);
    out.text(key("rope.scaling.type"), "yarn");
    out.f32(key("rope.scaling.factor"), 4.0f);
    number("rope.scaling.original_context_length", 64);
}

// The tensor as llama.cpp's converter writes it; `source` has it as gpt::tensor_specs() lists it.
inline std::string gguf_bytes(TensorSource& source, const gpt::TensorSpec& spec, const GgufCase& of,
                              const gpt::DecoderConfig& config) {
    const Tensor stored = gpt::take(source, spec);
    const std::string bytes(static_cast<const char*>(stored.data), stored.bytes());
    if (stored.dtype != Dtype::f32) return bytes;
    std::vector<float> values(stored.as<float>(), stored.as<float>() + stored.size());
    const int64_t columns = std::max<int64_t>(spec.columns, 1);
    const bool is_q = spec.part == gpt::Part::q || spec.part == gpt::Part::q_bias;
    const bool is_k = spec.part == gpt::Part::k || spec.part == gpt::Part::k_bias;
    if (of.interleaved && (is_q || is_k))
        values = interleave(values, is_q ? config.n_head : config.n_kv_head, columns);
    if (of.is_gemma && spec.name.find("norm") != spec.name.npos)
        for (float& value : values) value += 1;
    return std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size());
}

// All tensors; those of a layer's experts are one.
inline void add_tensors(GgufWriter& out, TensorSource& source, const GgufCase& of,
                        const gpt::DecoderConfig& config) {
    std::map<std::string, std::pair<gpt::TensorSpec, std::string>> tensors;
    for (const gpt::TensorSpec& spec : gpt::tensor_specs(config)) {
        auto& [first, bytes] = tensors[spec.gguf];
        if (bytes.empty()) first = spec;
        bytes += gguf_bytes(source, spec, of, config);
    }
    for (const auto& [name, tensor] : tensors) {
        const auto& [spec, bytes] = tensor;
        std::vector<uint64_t> dims = {static_cast<uint64_t>(spec.rows)};
        if (spec.columns > 0) dims.insert(dims.begin(), static_cast<uint64_t>(spec.columns));
        if (spec.expert >= 0) dims.push_back(static_cast<uint64_t>(config.experts.count));
        const bool blocks = gpt::take(source, spec).dtype == Dtype::mxfp4;
        out.tensor(name, dims, blocks ? 39 : 0, bytes);
    }
}

// All of it but a vocabulary.
inline GgufWriter family_gguf(TensorSource& source, const GgufCase& of,
                              const gpt::DecoderConfig& config) {
    GgufWriter out;
    add_keys(out, of, config);
    add_tensors(out, source, of, config);
    return out;
}

}  // namespace hark::test
