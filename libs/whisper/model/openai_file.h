// OpenAI's checkpoints: tiny.pt, large-v3.pt and what is saved in their format.
#pragma once

#include "whisper/model/model_file.h"

namespace hark::whisper {

// A file of torch.save with {"dims": the shape, "model_state_dict": the tensors}. It carries no
// vocabulary: multilingual.tiktoken or gpt2.tiktoken in its directory is taken. Throws Error naming
// file, dimension or tensor.
// Source: openai/whisper __init__.py, load_model, and model.py, ModelDimensions.
std::unique_ptr<ModelFile> open_openai(const std::filesystem::path& path);

}  // namespace hark::whisper
