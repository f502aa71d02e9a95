// The tensors of CTranslate2's model.bin.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/files/byte_cursor.h"
#include "core/files/mapped_file.h"
#include "formats/tensor_source.h"

namespace hark::whisper {

// The variables of a memory-mapped model.bin; docs/models/whisper.md has its layout.
// Source: OpenNMT/CTranslate2 python/ctranslate2/specs/model_spec.py, _serialize.
class Ctranslate2Variables {
  public:
    // Throws Error naming the file and the variable if it is truncated or its bytes do not fit its
    // shape.
    explicit Ctranslate2Variables(const std::filesystem::path& path);

    const std::string& name() const { return file_.name(); }
    // The variable or alias of that name, or nullptr. `begin` and `end` count from the file's first
    // byte.
    const TensorEntry* find(const std::string& variable) const;
    // find(), but throws Error instead of returning nullptr.
    const TensorEntry& need(const std::string& variable) const;
    // The value of a scalar such as "encoder/num_heads".
    int64_t number(const std::string& variable) const;
    int64_t dim(const std::string& variable, size_t i) const;

    const std::byte* data(const TensorEntry& entry) const { return file_.data() + entry.begin; }
    void forget(const TensorEntry& entry) const;

  private:
    void read_header(ByteCursor& in);
    void read_variable(ByteCursor& in);

    MappedFile file_;
    std::map<std::string, TensorEntry> variables_;
    std::map<std::string, std::string> aliases_;
};

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
