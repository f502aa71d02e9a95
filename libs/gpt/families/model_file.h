// A published language model: one interface, one reader per format.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "formats/tensor_source.h"
#include "gpt/families/config.h"
#include "gpt/families/embedding_settings.h"
#include "gpt/families/sampling_defaults.h"
#include "text/bpe.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace hark::gpt {

// The packed matrices of a folder, which are widened while they are read, or kept as blocks.
struct Widening {
    std::string format;             // "gptq, 4 bits"
    int64_t kept = 0;               // matrices that become blocks of q4_0 or q8_0
    int64_t widened = 0;            // matrices that become numbers
    int64_t bytes = 0;              // of these once they are widened
    Dtype dtype = Dtype::f16;       // of these
    Dtype model_type = Dtype::f16;  // of the model's activations
};

class ModelFile {
  public:
    virtual ~ModelFile() = default;

    virtual const char* format() const = 0;  // "Hugging Face", as hark-model info prints it
    virtual const DecoderConfig& config() const = 0;
    // Named as in Hugging Face's checkpoints without a prefix ("transformer.", "model.");
    // stores_out_in() gives the matrices' layout. A matrix may be quantised (is_quantized).
    virtual TensorSource& tensors() = 0;
    // Throws Error that names --tokenizer if the format has no vocabulary.
    virtual std::shared_ptr<const Tokenizer> tokenizer() const = 0;
    // Its byte-level BPE, to be written in another format. Throws Error as tokenizer() does, and if
    // the tokenizer is of another kind.
    virtual Bpe bpe() const = 0;
    // nullopt if the model has none.
    virtual std::optional<ChatTemplate> chat_template() const { return std::nullopt; }
    // What the file says of its licence; empty if it says nothing.
    virtual std::string license() const { return ""; }
    // nullopt if its matrices are numbers or blocks.
    virtual std::optional<Widening> widening() const { return std::nullopt; }
    virtual SamplingDefaults sampling_defaults() const { return {}; }
    virtual EmbeddingSettings embedding_settings() const { return {}; }
};

// The type of the layers' matrices in the file; of those that are widened, that of the model.
Dtype stored_type(ModelFile& file);

// Opens the Hugging Face directory, GGUF file or llm.c file at `path`. Throws Error with file, key
// or tensor if something is missing or is not a model.
std::unique_ptr<ModelFile> open_model(const std::filesystem::path& path);

}  // namespace hark::gpt
