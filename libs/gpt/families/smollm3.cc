// SmolLM3: Llama whose every fourth layer has no positions.
// Reference: transformers models/smollm3/modeling_smollm3.py.
#include "core/error.h"
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

constexpr double kSmolLm3Theta = 2e6;

DecoderConfig read_smollm3(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(
        in, "smollm3", {.tied = true, .rope_theta = in.is_gguf() ? kRopeTheta : kSmolLm3Theta});
    set_qwen_windows(c, in);
    // 1: the layer has a rope, in spite of the name.
    const std::vector<int64_t> ropes = in.integers({"no_rope_layers", nullptr});
    const int64_t interval =
        in.size_or({"no_rope_layer_interval", nullptr}, 1024, kSmolLm3Interval);
    require(ropes.empty() || std::ssize(ropes) == c.n_layer, in.where(),
            ": 'no_rope_layers': expected ", c.n_layer, " values, found ", ropes.size());
    for (int64_t i = 0; i < c.n_layer; ++i) {
        const bool has =
            ropes.empty() ? (i + 1) % interval != 0 : ropes[static_cast<size_t>(i)] != 0;
        if (!has) c.layers[static_cast<size_t>(i)].rope = -1;
    }
    return c;
}

}  // namespace

extern const Family kSmolLm3;
const Family kSmolLm3 = {.model_type = "smollm3",
                         .gguf = "smollm3",
                         .read = read_smollm3,
                         .gguf_interleaves = true,
                         .rope_theta = kSmolLm3Theta};

}  // namespace hark::gpt
