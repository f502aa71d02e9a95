// A language model in a GGUF file, as llama.cpp's converter writes it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "gpt/families/model_file.h"
#include "gpt/families/tensor_spec.h"

namespace hark::gpt {

// Tensors under Hugging Face's names, matrices (out, in).
class GgufModel : public ModelFile, public TensorSource {
  public:
    // Throws Error with the file, key or tensor if one is missing or of another shape.
    explicit GgufModel(const std::filesystem::path& path);

    const char* format() const override { return "GGUF"; }
    const DecoderConfig& config() const override { return config_; }
    TensorSource& tensors() override { return *this; }
    std::shared_ptr<const Tokenizer> tokenizer() const override;
    Bpe bpe() const override { return Bpe::from_gguf(file_); }
    std::optional<ChatTemplate> chat_template() const override;
    std::string license() const override;
    SamplingDefaults sampling_defaults() const override { return sampling_defaults_of(file_); }
    EmbeddingSettings embedding_settings() const override { return embedding_settings_of(file_); }

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override;
    bool has(const std::string& name) const override;
    std::string where() const override { return file_.name(); }
    void release_tensors() override;
    bool is_mapped(const Tensor& tensor) const override { return file_.holds(tensor.data); }
    bool stores_out_in() const override { return true; }

  private:
    Tensor part_of(const Tensor& stacked, const TensorSpec& spec) const;
    // Rows of interleaved rotary pairs back in the order of halves, in memory of this object's.
    Tensor in_halves(const Tensor& tensor, int64_t heads);

    GgufFile file_;
    DecoderConfig config_;
    mutable std::shared_ptr<const Tokenizer> tokenizer_;  // once it has been asked for
    std::map<std::string, TensorSpec> specs_;             // by name
    std::vector<Tensor> taken_;
    std::vector<std::unique_ptr<std::byte[]>> copies_;  // until release_tensors()
};

}  // namespace hark::gpt
