#include "whisper/openai_names.h"

#include <utility>

namespace hark::whisper {

std::string openai_name(const std::string& hugging_face_name) {
    static constexpr std::pair<const char*, const char*> kParts[] = {
        {"encoder.layer_norm.", "encoder.ln_post."},
        {"decoder.layer_norm.", "decoder.ln."},
        {".embed_positions.weight", ".positional_embedding"},
        {".embed_tokens.", ".token_embedding."},
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
        {".fc2.", ".mlp.2."}};
    std::string name = hugging_face_name;
    for (const auto& [from, to] : kParts)
        if (const size_t at = name.find(from); at != name.npos)
            name.replace(at, std::string(from).size(), to);
    return name;
}

}  // namespace hark::whisper
