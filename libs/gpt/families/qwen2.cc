// Qwen2 and 2.5: Llama with biases on q, k and v.
// Reference: transformers models/qwen2/modeling_qwen2.py.
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

DecoderConfig read_qwen2(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(in, "qwen2");
    c.qkv_bias = true;
    c.attn_out_bias = false;
    set_qwen_windows(c, in);
    return c;
}

}  // namespace

void set_qwen_windows(DecoderConfig& c, const ConfigReader& in) {
    if (!in.boolean_or({"use_sliding_window", nullptr}, false)) return;
    const int64_t window = in.size_or({"sliding_window", nullptr}, 1 << 28, 4096);
    if (set_layer_types(c, in, window)) return;
    const int64_t full = in.has({"max_window_layers", nullptr})
                             ? in.integer({"max_window_layers", nullptr}, 0, 1024)
                             : 28;
    set_layers(c, window, [&](int64_t i) { return i >= full; });
}

extern const Family kQwen2;
const Family kQwen2 = {.model_type = "qwen2", .gguf = "qwen2", .read = read_qwen2};

}  // namespace hark::gpt
