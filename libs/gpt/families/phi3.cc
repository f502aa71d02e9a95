// Phi-3, 3.5 and 4: Llama with q, k, v and gate, up in one tensor each, rotary positions over a
// part of a head, longrope. Reference: transformers models/phi3/modeling_phi3.py.
#include "core/error.h"
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

constexpr PartName kPhi3Names[] = {
    {Part::qkv, "self_attn.qkv_proj.weight"},
    {Part::gate_up, "mlp.gate_up_proj.weight"},
};

DecoderConfig read_phi3(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(in, "phi3", {.norm_eps = 1e-5});
    require(!c.qkv_bias, in.where(),
            ": 'attention_bias': expected false, the only supported value");
    c.fused_qkv = c.fused_gate_up = true;
    const int64_t window = in.size_or({"sliding_window", "attention.sliding_window"}, 1 << 28, 0);
    set_layers(c, window, [](int64_t) { return true; });
    return c;
}

}  // namespace

extern const Family kPhi3;
const Family kPhi3 = {.model_type = "phi3", .gguf = "phi3", .read = read_phi3, .names = kPhi3Names};

}  // namespace hark::gpt
