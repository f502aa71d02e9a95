// A Whisper model's file or directory: one interface, one reader per format.
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

    virtual const char* format() const = 0;  // "Hugging Face", as hark-model info prints it
    virtual const Config& config() const = 0;
    // Tensors by Hugging Face's names without the prefix "model."; matrices are (out, in) and may
    // be quantised (is_quantized).
    virtual TensorSource& tensors() = 0;
    // Whether matrices are int8 with one scale per row. If so, --dtype auto means
    // int8 on the CPU.
    bool int8() { return tensors().stores_int8("decoder.embed_tokens.weight"); }
    // The type of the layers' matrices in the file; f32 of int8 with scales.
    Dtype stored_type() {
        const Dtype type =
            tensors()
                .take("decoder.layers.0.fc1.weight", {config().n_text_mlp, config().n_text_state})
                .dtype;
        tensors().release_tensors();
        return type;
    }
    // Throws Error that names --tokenizer if the format has no vocabulary.
    virtual Tokenizer tokenizer() const = 0;
};

// Opens the model at `path`: a Hugging Face directory, a CTranslate2 directory (model.bin),
// OpenAI's .pt, or a ggml file. Throws Error naming file, key or tensor, what was expected and what
// was found.
std::unique_ptr<ModelFile> open_model(const std::filesystem::path& path);

}  // namespace hark::whisper
