// Qwen3's mixtures of experts, 30B-A3B and 235B-A22B: Qwen3 with many small experts.
// Reference: transformers models/qwen3_moe/modeling_qwen3_moe.py.
#include <algorithm>

#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

DecoderConfig read_qwen3_moe(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(in, "qwen3_moe");
    c.qk_norm = QkNorm::head;
    if (in.boolean_or({"use_sliding_window", nullptr}, false)) {
        const int64_t window = in.size_or({"sliding_window", nullptr}, 1 << 28, 4096);
        set_layers(c, window, [](int64_t) { return true; });
    }
    set_experts(c, in, "num_experts", "moe_intermediate_size");
    // GGUF has no key; llama.cpp normalises.
    c.experts.normalized = in.boolean_or({"norm_topk_prob", nullptr}, in.is_gguf());
    const int64_t step = in.size_or({"decoder_sparse_step", nullptr}, 1024, 1);
    const std::vector<int64_t> plain = in.integers({"mlp_only_layers", nullptr});
    for (int64_t i = 0; i < c.n_layer; ++i)
        c.layers[static_cast<size_t>(i)].has_experts =
            (i + 1) % step == 0 && std::find(plain.begin(), plain.end(), i) == plain.end();
    return c;
}

}  // namespace

extern const Family kQwen3Moe;
const Family kQwen3Moe = {.model_type = "qwen3_moe", .gguf = "qwen3moe", .read = read_qwen3_moe};

}  // namespace hark::gpt
