#include "gpt/families/gguf_types.h"

#include "core/error.h"
#include "kernels/quant/quantize.h"

namespace hark::gpt {
namespace {

struct GgufType {
    const char* name;
    Dtype dtype;  // of most matrices
    int64_t number;
};
constexpr GgufType kGgufTypes[] = {
    {"f32", Dtype::f32, 0},      {"f16", Dtype::f16, 1},      {"bf16", Dtype::bf16, 32},
#define HARK_QUANTIZED(name, block, values, bytes, type, file_type, number) \
    {#name, Dtype::name, number},
#include "core/quantized_types.def"
#undef HARK_QUANTIZED
    {"q4_k_m", Dtype::q4_k, 15}, {"q5_k_m", Dtype::q5_k, 17},
};

constexpr int64_t kFewExperts = 8;  // Mixtral's

const GgufType& find(const std::string& name) {
    for (const GgufType& type : kGgufTypes)
        if (name == type.name) return type;
    fail("expected a type that GGUF files are written in, found ", name);
}

// The first and the last eighth of the layers, and every third between them.
bool has_more_bits(int64_t layer, int64_t layers) {
    const int64_t eighth = layers / 8;
    return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

// Of a layer's matrix in a file whose matrices mostly have the type `most`.
Dtype type_in_layer(const TensorSpec& spec, const DecoderConfig& config, Dtype most,
                    bool is_mixture) {
    const Part part = spec.part;
    const bool is_down =
        part == Part::down || part == Part::expert_down || part == Part::shared_down;
    // Eight experts: what they share is small next to them.
    if (config.experts.count == kFewExperts) {
        if (part == Part::k || part == Part::v) return Dtype::q8_0;
        if (part == Part::attn_out && is_mixture && most == Dtype::q4_k) return Dtype::q5_k;
    }
    if (!is_mixture) return most;
    const bool more = has_more_bits(spec.layer, config.n_layer);
    if ((part == Part::v || is_down) && more) return Dtype::q6_k;
    if (part == Part::qkv) return most == Dtype::q4_k ? Dtype::q5_k : Dtype::q6_k;
    return most;
}

Dtype in_whole_blocks(Dtype dtype, int64_t columns) {
    if (columns % block_size(dtype).values == 0) return dtype;
    Dtype smaller = Dtype::q4_0;  // for q2_k and q3_k
    if (dtype == Dtype::q4_k) smaller = Dtype::q5_0;
    if (dtype == Dtype::q5_k) smaller = Dtype::q5_1;
    if (dtype == Dtype::q6_k) smaller = Dtype::q8_0;
    if (dtype == Dtype::iq4_xs) smaller = Dtype::iq4_nl;
    return columns % block_size(smaller).values == 0 ? smaller : Dtype::f16;
}

}  // namespace

std::vector<std::string> gguf_types() {
    std::vector<std::string> names;
    for (const GgufType& type : kGgufTypes) names.push_back(type.name);
    return names;
}

Dtype gguf_type_of(const TensorSpec& spec, const DecoderConfig& config, const std::string& type) {
    if (!spec.is_matrix() || spec.part == Part::router) return Dtype::f32;
    const Dtype most = find(type).dtype;
    if (!is_quantized(most)) return most;
    const bool is_output = spec.part == Part::lm_head ||
                           (spec.part == Part::token_table && config.tie_word_embeddings);
    if (is_output) {
        const bool whole = spec.columns % block_size(most).values == 0;
        return in_whole_blocks(whole && most != Dtype::q8_0 ? Dtype::q6_k : Dtype::q8_0,
                               spec.columns);
    }
    return in_whole_blocks(type_in_layer(spec, config, most, type.ends_with("_k_m")), spec.columns);
}

int64_t gguf_file_type(const std::string& type) { return find(type).number; }

}  // namespace hark::gpt
