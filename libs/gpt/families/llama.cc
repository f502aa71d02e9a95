// Llama 2 to 3.3, and what shares its class: SmolLM2, TinyLlama, Yi, Vicuna.
// Reference: transformers models/llama/modeling_llama.py.
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

DecoderConfig read_llama(const ConfigReader& in) {
    // GGUF's architecture of Mixtral is llama too.
    if (in.is_gguf() && in.integer_or({nullptr, "expert_count"}, 0, 1024, 0) > 0)
        return read_mixtral(in);
    return read_llama_like(in, "llama");
}

}  // namespace

extern const Family kLlama;
const Family kLlama = {
    .model_type = "llama", .gguf = "llama", .read = read_llama, .gguf_interleaves = true};

}  // namespace hark::gpt
