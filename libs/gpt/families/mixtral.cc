// Mixtral: Mistral with a mixture of experts in every layer. Its GGUF files are those of Llama,
// with a number of experts. Reference: transformers models/mixtral/modeling_mixtral.py.
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

constexpr double kMixtralTheta = 1e6;

constexpr PartName kMixtralNames[] = {
    {Part::router, "block_sparse_moe.gate.weight"},
    {Part::expert_gate, "block_sparse_moe.experts.{}.w1.weight"},
    {Part::expert_up, "block_sparse_moe.experts.{}.w3.weight"},
    {Part::expert_down, "block_sparse_moe.experts.{}.w2.weight"},
};

}  // namespace

DecoderConfig read_mixtral(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(
        in, "mixtral", {.n_kv_head = 8, .rope_theta = kMixtralTheta, .norm_eps = 1e-5});
    const int64_t window = in.size_or({"sliding_window", nullptr}, 1 << 28, 0);
    set_layers(c, window, [](int64_t) { return true; });
    set_experts(c, in, "num_local_experts", "intermediate_size");
    return c;
}

extern const Family kMixtral;
const Family kMixtral = {.model_type = "mixtral",
                         .gguf = nullptr,
                         .read = read_mixtral,
                         .names = kMixtralNames,
                         .gguf_interleaves = true,
                         .rope_theta = kMixtralTheta};

}  // namespace hark::gpt
