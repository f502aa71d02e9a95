#include "whisper/model/openai_names.h"

#include <string_view>

namespace hark::whisper {
namespace {

struct OpenaiName {
    std::string_view hugging_face, openai;
};

// Source: openai/whisper model.py, the modules' attributes; transformers modeling_whisper.py.
constexpr OpenaiName kOpenaiNames[] = {
    {".layers.", ".blocks."},
    {".self_attn_layer_norm.", ".attn_ln."},
    {".encoder_attn_layer_norm.", ".cross_attn_ln."},
    {".final_layer_norm.", ".mlp_ln."},
    {".self_attn.", ".attn."},
    {".encoder_attn.", ".cross_attn."},
    {".q_proj.", ".query."},
    {".k_proj.", ".key."},
    {".v_proj.", ".value."},
    {".out_proj.", ".out."},
    {".fc1.", ".mlp.0."},
    {".fc2.", ".mlp.2."},
    {".embed_positions.weight", ".positional_embedding"},
    {".embed_tokens.", ".token_embedding."},
    {"encoder.layer_norm.", "encoder.ln_post."},
    {"decoder.layer_norm.", "decoder.ln."},
};

}  // namespace

std::string openai_name(const std::string& hugging_face_name) {
    std::string name = hugging_face_name;
    for (const OpenaiName& renamed : kOpenaiNames)
        if (const size_t at = name.find(renamed.hugging_face); at != std::string::npos)
            name.replace(at, renamed.hugging_face.size(), renamed.openai);
    return name;
}

}  // namespace hark::whisper
