// The names that openai-whisper gives a model's tensors, in its .pt files and in ggml's.
#pragma once

#include <string>

namespace hark::whisper {

// "encoder.layers.0.self_attn.q_proj.weight" -> "encoder.blocks.0.attn.query.weight". Names that
// are the same in both, as "encoder.conv1.bias", come back as they are.
// Source: openai/whisper model.py; transformers' convert_openai_to_hf.py.
std::string openai_name(const std::string& hugging_face_name);

}  // namespace hark::whisper
