// Granite 3: Llama with four factors.
// Reference: transformers models/granite/modeling_granite.py.
#include "core/error.h"
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

DecoderConfig read_granite(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(in, "granite");
    const auto factor = [&](const Key& key, double otherwise) {
        const double value = in.number_or(key, otherwise);
        require(value > 0, in.where(), ": expected a factor above 0, found ", value);
        return static_cast<float>(value);
    };
    c.embedding_scale = factor({"embedding_multiplier", "embedding_scale"}, 1);
    c.attention_scale = factor({"attention_multiplier", "attention.scale"}, 1);
    c.residual_scale = factor({"residual_multiplier", "residual_scale"}, 1);
    c.logit_scale = 1 / factor({"logits_scaling", "logit_scale"}, 1);
    return c;
}

}  // namespace

extern const Family kGranite;
const Family kGranite = {
    .model_type = "granite", .gguf = "granite", .read = read_granite, .gguf_interleaves = true};

}  // namespace hark::gpt
