// Phi-3, 3.5 and 4: Llama with q, k, v and gate, up in one tensor each, rotary positions over a
// part of a head, longrope. Reference: transformers models/phi3/modeling_phi3.py.
#include "core/error.h"
#include "gpt/families/family.h"
#include "gpt/families/rope_table.h"

namespace hark::gpt {
namespace {

constexpr PartName kNames[] = {
    {Part::qkv, "self_attn.qkv_proj.weight"},
    {Part::gate_up, "mlp.gate_up_proj.weight"},
};

DecoderConfig read(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(in, "phi3", false);
    require(!c.qkv_bias, in.where(),
            ": 'attention_bias': expected false, the only supported value");
    c.fused_qkv = c.fused_gate_up = true;
    const int64_t window = in.size_or({"sliding_window", "attention.sliding_window"}, 1 << 28, 0);
    set_layers(c, window, [](int64_t) { return true; });
    // transformers keeps longrope's original length at the top; older files name it su or yarn.
    RopeSettings rope = in.rope(10000);
    if (rope.original_length == 0)
        rope.original_length =
            in.size_or({"original_max_position_embeddings", nullptr}, 1 << 28, c.n_positions);
    if (!rope.long_factor.empty()) rope.type = "longrope";
    const auto rotary = 2 * static_cast<int64_t>(c.ropes[0].frequencies.size());
    c.ropes = {rope_table(rope, rotary, c.n_positions, in.where())};
    return c;
}

}  // namespace

extern const Family kPhi3;
const Family kPhi3 = {.model_type = "phi3",
                      .gguf = "phi3",
                      .prefix = "model.",
                      .layer_prefix = "layers.",
                      .names = kNames,
                      .read = read};

}  // namespace hark::gpt
