// openai/whisper's names of tensors, in .pt and ggml files.
#pragma once

#include <string>

namespace hark::whisper {

// OpenAI's name of a tensor given by Hugging Face's name without its prefix "model.":
// "decoder.layers.0.encoder_attn.q_proj.weight" -> "decoder.blocks.0.cross_attn.query.weight".
std::string openai_name(const std::string& hugging_face_name);

}  // namespace hark::whisper
