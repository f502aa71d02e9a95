// GPT-2 in a GGUF file, as llama.cpp's converter writes and quantises it.
// Source: gguf-py's constants.py (keys, names of tensors) and convert_hf_to_gguf.py, which
// transposes Conv1D's matrices to (out, in).
#pragma once

#include <vector>

#include "formats/gguf.h"
#include "gpt/families/model_file.h"

namespace hark::gpt {

class GgufModel : public ModelFile, public TensorSource {
  public:
    // Throws Error with the file and the key or tensor: not GGUF, another architecture, a key
    // missing or out of range, a tensor missing or of another shape than the keys give.
    explicit GgufModel(const std::filesystem::path& path);

    const char* format() const override { return "GGUF"; }
    const Config& config() const override { return config_; }
    TensorSource& tensors() override { return *this; }
    Bpe tokenizer() const override { return Bpe::from_gguf(file_); }

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override;
    bool has(const std::string& name) const override;
    std::string where() const override { return file_.name(); }
    void forget_taken() override;
    bool stores_out_in() const override { return true; }

  private:
    GgufFile file_;
    Config config_;
    std::vector<Tensor> taken_;
};

}  // namespace hark::gpt
