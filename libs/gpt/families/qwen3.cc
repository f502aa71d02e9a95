// Qwen3: Llama with norms of each head's queries and keys before the rope.
// Reference: transformers models/qwen3/modeling_qwen3.py.
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

DecoderConfig read_qwen3(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(in, "qwen3");
    c.qk_norm = QkNorm::head;
    set_qwen_windows(c, in);
    return c;
}

}  // namespace

extern const Family kQwen3;
const Family kQwen3 = {.model_type = "qwen3", .gguf = "qwen3", .read = read_qwen3};

}  // namespace hark::gpt
