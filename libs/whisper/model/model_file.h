// A Whisper model as it was published: one interface, a reader per format behind it.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/tensor_source.h"
#include "whisper/model/config.h"
#include "whisper/model/tokenizer.h"

namespace hark::whisper {

class ModelFile {
  public:
    virtual ~ModelFile() = default;

    virtual const char* format() const = 0;  // "Hugging Face", as hark-model info says it
    virtual const Config& config() const = 0;
    // Under the names of Hugging Face's checkpoints, without "model." in front; matrices are
    // (out, in). A matrix may be quantised (is_quantized).
    virtual TensorSource& tensors() = 0;
    // Whether the matrices are int8 with a scale a row: --dtype auto is int8 then on the CPU.
    bool int8() { return tensors().stores_int8("decoder.embed_tokens.weight"); }
    // Throws Error where the format carries no vocabulary, which names --tokenizer.
    virtual Tokenizer tokenizer() const = 0;
};

// Opens a model by what lies at `path`: a Hugging Face directory, a CTranslate2 directory
// (model.bin), OpenAI's .pt, or a ggml file. Throws Error naming file, key or tensor: what is
// missing or is no model, and what was found.
std::unique_ptr<ModelFile> open_model(const std::filesystem::path& path);

}  // namespace hark::whisper
