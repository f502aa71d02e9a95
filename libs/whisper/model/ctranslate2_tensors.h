// The tensors of a Whisper model in CTranslate2's model.bin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/ctranslate2.h"
#include "formats/tensor_source.h"

namespace hark::whisper {

// The variables by Hugging Face's names: queries, keys and values split, int8 and int16 converted
// to f32.
class Ctranslate2Tensors : public TensorSource {
  public:
    // `file` must outlive this object.
    explicit Ctranslate2Tensors(const Ctranslate2Variables& file) : file_(file) {}

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override;
    bool has(const std::string& name) const override;
    std::string where() const override { return file_.name(); }
    void release_tensors() override;
    bool stores_int8(const std::string& name) const override;

  private:
    std::byte* buffer(size_t bytes);
    template <class Integer>
    void widen(const Tensor& tensor, const std::byte* stored, const TensorEntry& entry,
               int64_t first_row);

    const Ctranslate2Variables& file_;
    std::vector<const TensorEntry*> taken_;
    std::vector<std::unique_ptr<std::byte[]>> buffers_;
};

}  // namespace hark::whisper
