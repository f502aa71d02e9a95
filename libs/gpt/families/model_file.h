// A GPT-2 model as it was published: one interface, a reader per format behind it.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/tensor_source.h"
#include "gpt/families/config.h"
#include "text/bpe.h"

namespace hark::gpt {

class ModelFile {
  public:
    virtual ~ModelFile() = default;

    virtual const char* format() const = 0;  // "Hugging Face", as hark-model info says it
    virtual const Config& config() const = 0;
    // Under the names of Hugging Face's checkpoints, without "transformer." in front; matrices as
    // stores_out_in() says. A matrix may be quantised (is_quantized).
    virtual TensorSource& tensors() = 0;
    // Throws Error, which names --tokenizer, if the format carries no vocabulary.
    virtual Bpe tokenizer() const = 0;
};

// Opens a model by what lies at `path`: a Hugging Face directory, a GGUF file, llm.c's. Throws
// Error naming file, key or tensor: what is missing or is no model, and what was found.
std::unique_ptr<ModelFile> open_model(const std::filesystem::path& path);

}  // namespace hark::gpt
