// OLMo 3: OLMo 2 with a window, and a rope without scaling, in three layers of four. Its GGUF files
// are those of OLMo 2, with a window. Reference: transformers models/olmo3/modeling_olmo3.py.
#include "gpt/families/family.h"
#include "gpt/families/rope_table.h"

namespace hark::gpt {

DecoderConfig read_olmo3(const ConfigReader& in) {
    DecoderConfig c = read_olmo(in, "olmo3");
    const Key window_key{"sliding_window", "attention.sliding_window"};
    const int64_t window = in.mentions(window_key) ? in.size(window_key, 1 << 28) : 4096;
    if (!set_layer_types(c, in, window)) {
        const int64_t period = in.size_or({nullptr, "attention.sliding_window_pattern"}, 1024, 4);
        set_layers(c, window, [&](int64_t i) { return (i + 1) % period != 0; });
    }
    RopeSettings plain;
    plain.theta = in.rope(10000, "sliding_attention").theta;
    plain.theta = in.number_or({nullptr, "rope.freq_base_swa"}, plain.theta);
    const auto rotary = 2 * std::ssize(c.ropes[0].frequencies);
    c.ropes.push_back(rope_table(plain, rotary, c.n_positions, in.where()));
    for (LayerConfig& layer : c.layers) layer.rope = layer.window > 0 ? 1 : 0;
    return c;
}

extern const Family kOlmo3;
const Family kOlmo3 = {
    .model_type = "olmo3", .gguf = nullptr, .read = read_olmo3, .names = kPostNormNames};

}  // namespace hark::gpt
