// OLMo 2: norms after attention and MLP, and over all of a row's queries and keys.
// Reference: transformers models/olmo2/modeling_olmo2.py.
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

DecoderConfig read_olmo2(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(in, "olmo2");
    c.norm_place = NormPlace::after;
    c.qk_norm = QkNorm::row;
    return c;
}

}  // namespace

extern const Family kOlmo2;
const Family kOlmo2 = {
    .model_type = "olmo2", .gguf = "olmo2", .read = read_olmo2, .names = kPostNormNames};

}  // namespace hark::gpt
