// OLMo 2: norms after attention and MLP, and over all of a row's queries and keys.
// Reference: transformers models/olmo2/modeling_olmo2.py.
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

DecoderConfig read_olmo2(const ConfigReader& in) {
    // GGUF's architecture of OLMo 3 is olmo2 too.
    if (in.is_gguf() && in.integer_or({nullptr, "attention.sliding_window"}, 0, 1 << 28, 0) > 0)
        return read_olmo3(in);
    return read_olmo(in, "olmo2");
}

}  // namespace

DecoderConfig read_olmo(const ConfigReader& in, const char* family) {
    DecoderConfig c = read_llama_like(in, family, {.norm_eps = 1e-5});
    c.norm_place = NormPlace::after;
    c.qk_norm = QkNorm::row;
    return c;
}

extern const Family kOlmo2;
const Family kOlmo2 = {
    .model_type = "olmo2", .gguf = "olmo2", .read = read_olmo2, .names = kPostNormNames};

}  // namespace hark::gpt
