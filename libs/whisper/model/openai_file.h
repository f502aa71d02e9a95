// OpenAI's checkpoints: tiny.pt, large-v3.pt and other files of their format.
#pragma once

#include "whisper/model/model_file.h"

namespace hark::whisper {

// Opens a torch.save file of {"dims": shape, "model_state_dict": tensors}. The vocabulary is read
// from multilingual.tiktoken or gpt2.tiktoken in its directory. Throws Error naming file, dimension
// or tensor. Source: openai/whisper __init__.py, load_model, and model.py, ModelDimensions.
std::unique_ptr<ModelFile> open_openai(const std::filesystem::path& path);

}  // namespace hark::whisper
