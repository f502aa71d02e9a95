// CTranslate2's names of tensors.
#pragma once

#include <cstdint>
#include <string>

namespace hark::whisper {

// A variable, and one of the equal parts of its rows: queries, keys and values are stacked.
struct Ctranslate2Place {
    std::string variable;
    int64_t part = 0, parts = 1;
};

// The place of a tensor given by Hugging Face's name without its prefix "model.":
// "decoder.layers.0.encoder_attn.v_proj.bias" -> "decoder/layer_0/attention/linear_1/bias", 1 of 2.
Ctranslate2Place ctranslate2_place(const std::string& hugging_face_name);

}  // namespace hark::whisper
