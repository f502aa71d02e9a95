// CTranslate2's model.bin: named variables of a model, and aliases of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "core/files/byte_cursor.h"
#include "core/files/mapped_file.h"
#include "formats/safetensors.h"

namespace hark {

// The dtypes of variables that have scales.
inline constexpr const char *kCtranslate2Int8 = "I8", *kCtranslate2Int16 = "I16";

// A file of the format's versions 4 to 6, memory-mapped; docs/formats.md has its layout.
// Source: OpenNMT/CTranslate2 python/ctranslate2/specs/model_spec.py, _serialize.
class Ctranslate2Variables {
  public:
    // Throws Error naming the file, and the variable if it is truncated or its bytes do not fit its
    // shape; also if the model is not of kind `spec` ("WhisperSpec") in that revision.
    Ctranslate2Variables(const std::filesystem::path& path, const std::string& spec,
                         uint32_t revision);

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
    void read_header(ByteCursor& in, const std::string& spec, uint32_t revision);
    void read_variable(ByteCursor& in);

    MappedFile file_;
    std::map<std::string, TensorEntry> variables_;
    std::map<std::string, std::string> aliases_;
};

}  // namespace hark
