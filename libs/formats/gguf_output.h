// The header of a GGUF file that is written: version 3, little-endian. Layout: formats/gguf.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace hark {

class GgufOutput {
  public:
    // Keys; a name is to be given once.
    void count(std::string_view key, int64_t value);  // u32; throws Error where it does not fit
    void real(std::string_view key, double value);    // f32
    void flag(std::string_view key, bool value);
    void text(std::string_view key, std::string_view value);
    void texts(std::string_view key, const std::vector<std::string>& values);
    void reals(std::string_view key, const std::vector<float>& values);
    void integers(std::string_view key, const std::vector<int32_t>& values);
    // What a tensor is: its type and shape, row-major. Its bytes follow those of the tensor before.
    void tensor(std::string_view name, const Tensor& described);

    // The bytes before the tensors' data.
    std::string header() const;
    // Zeros that follow a tensor of this many bytes.
    static size_t padding(size_t bytes) { return (kAlignment - bytes % kAlignment) % kAlignment; }

  private:
    static constexpr size_t kAlignment = 32;
    void begin_key(std::string_view key, uint32_t type);

    std::string keys_, tensors_;
    uint64_t key_count_ = 0, tensor_count_ = 0, data_bytes_ = 0;
};

}  // namespace hark
