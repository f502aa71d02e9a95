// GPT-2 in llm.c's format: 256 int32, then 16 tensors of one dtype, a block's stacked over the
// layers, matrices (out, in), vocabulary padded. Source: llm.c train_gpt2.py (write_model: magic
// 20240326, version 3 float32, 5 bfloat16), train_gpt2.c (gpt2_build_from_checkpoint).
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/mapped_file.h"
#include "gpt/families/model_file.h"

namespace hark::gpt {

inline constexpr int32_t kLlmcMagic = 20240326;  // a file's first int32

struct LlmcHeader {
    DecoderConfig config;  // GPT-2's values for what the format lacks
    int64_t padded_vocab = 0;
    Dtype dtype = Dtype::f32;  // or bf16

    int64_t file_bytes() const;
    std::string text() const;
    // Throws Error that begins with `name`: too few bytes, another magic or version, a size out of
    // range.
    static LlmcHeader parse(std::string_view bytes, const std::string& name);
};

// Tensors under Hugging Face's names, matrices (out, in), the vocabulary without padding.
class LlmcFile : public ModelFile, public TensorSource {
  public:
    // Throws Error with the file as LlmcHeader::parse() does, or if the file's size does not fit
    // the header.
    explicit LlmcFile(const std::filesystem::path& path);

    const char* format() const override { return "llm.c"; }
    const DecoderConfig& config() const override { return header_.config; }
    TensorSource& tensors() override { return *this; }
    std::shared_ptr<const Tokenizer> tokenizer() const override;
    Bpe bpe() const override;
    Dtype dtype() const { return header_.dtype; }
    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override;
    bool has(const std::string& name) const override;
    std::string where() const override { return file_.name(); }
    void release_tensors() override;
    bool stores_out_in() const override { return true; }

  private:
    struct Place {
        size_t offset = 0;
        int64_t rows = 0, columns = 0;  // columns 0: a vector
    };
    MappedFile file_;
    LlmcHeader header_;
    std::map<std::string, Place> places_;
    std::vector<std::pair<size_t, size_t>> taken_;  // offset, bytes
};

// Throws Error that begins with `name` if the format cannot hold the model: an output table of its
// own, another MLP width, activation or epsilon.
void check_llmc(const DecoderConfig& config, const std::string& name);

// The float32 values of a tensor, (out, in), by its name in a Hugging Face checkpoint.
using TensorValues = std::function<const float*(const std::string& name)>;

// Writes a model as f32 or bf16, whole or not at all. Throws Error as check_llmc() does.
void write_llmc(const std::filesystem::path& file, const DecoderConfig& config,
                const TensorValues& values, Dtype dtype);

}  // namespace hark::gpt
