#include "whisper/model/ctranslate2_names.h"

#include <algorithm>
#include <string_view>

namespace hark::whisper {
namespace {

struct Ctranslate2Name {
    std::string_view hugging_face, ctranslate2;
    int64_t part, parts;
};

// Source: OpenNMT/CTranslate2 python/ctranslate2/converters/transformers.py, WhisperLoader, and
// specs/transformer_spec.py. The first match counts.
constexpr Ctranslate2Name kCtranslate2Names[] = {
    {".layer_norm.weight", "/layer_norm/gamma", 0, 1},
    {".layer_norm.bias", "/layer_norm/beta", 0, 1},
    {".self_attn_layer_norm.weight", "/self_attention/layer_norm/gamma", 0, 1},
    {".self_attn_layer_norm.bias", "/self_attention/layer_norm/beta", 0, 1},
    {".encoder_attn_layer_norm.weight", "/attention/layer_norm/gamma", 0, 1},
    {".encoder_attn_layer_norm.bias", "/attention/layer_norm/beta", 0, 1},
    {".final_layer_norm.weight", "/ffn/layer_norm/gamma", 0, 1},
    {".final_layer_norm.bias", "/ffn/layer_norm/beta", 0, 1},
    {".self_attn.q_proj.", "/self_attention/linear_0/", 0, 3},
    {".self_attn.k_proj.", "/self_attention/linear_0/", 1, 3},
    {".self_attn.v_proj.", "/self_attention/linear_0/", 2, 3},
    {".self_attn.out_proj.", "/self_attention/linear_1/", 0, 1},
    {".encoder_attn.q_proj.", "/attention/linear_0/", 0, 1},
    {".encoder_attn.k_proj.", "/attention/linear_1/", 0, 2},
    {".encoder_attn.v_proj.", "/attention/linear_1/", 1, 2},
    {".encoder_attn.out_proj.", "/attention/linear_2/", 0, 1},
    {".fc1.", "/ffn/linear_0/", 0, 1},
    {".fc2.", "/ffn/linear_1/", 0, 1},
    {".embed_positions.weight", "/position_encodings/encodings", 0, 1},
    {".embed_tokens.", "/embeddings/", 0, 1},
    {".conv1.", "/conv1/", 0, 1},
    {".conv2.", "/conv2/", 0, 1},
};

}  // namespace

Ctranslate2Place ctranslate2_place(const std::string& hugging_face_name) {
    Ctranslate2Place place{hugging_face_name};
    for (const Ctranslate2Name& renamed : kCtranslate2Names) {
        const size_t at = place.variable.find(renamed.hugging_face);
        if (at == std::string::npos) continue;
        place.variable.replace(at, renamed.hugging_face.size(), renamed.ctranslate2);
        place.part = renamed.part;
        place.parts = renamed.parts;
        break;
    }
    // "decoder.layers.0" -> "decoder/layer_0"
    if (const size_t at = place.variable.find(".layers."); at != std::string::npos)
        place.variable.replace(at, 8, "/layer_");
    return place;
}

}  // namespace hark::whisper
