// The tensors of one module in a folder of safetensors, of any type.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "formats/tensor_source.h"

namespace hark {

// Value i of a tensor's data, which is not aligned.
template <class T>
T load_value(const std::byte* data, int64_t i) {
    T value;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return value;
}

// Number i of unsigned numbers of `bits` each, up to 8, from the lowest bit of the first word on,
// across the words' borders. word(k) is the kth word of 32 bits.
template <class Word>
uint32_t packed_bits(const Word& word, int64_t i, int bits) {
    const int64_t at = i * bits;
    const auto shift = static_cast<int>(at % 32);
    uint64_t value = word(at / 32);
    if (shift + bits > 32) value |= static_cast<uint64_t>(word(at / 32 + 1)) << 32;
    return static_cast<uint32_t>(value >> shift) & ((1u << bits) - 1);
}

// The words of 32 bits that n such numbers take.
inline int64_t packed_words(int64_t n, int bits) { return (n * bits + 31) / 32; }

// A tensor of F32, F16 or BF16.
struct FloatPart {
    std::vector<float> values;
    std::vector<int64_t> shape;
    Dtype dtype = Dtype::f32;
};

class ModuleParts {
  public:
    // Of the module "layers.0.mlp.up_proj". `folder` must outlive the parts.
    ModuleParts(SafetensorsDirectory& folder, std::string module)
        : folder_(folder), module_(std::move(module)) {}

    // The module's name in the folder, by one of its parts: "model.layers.0.mlp.up_proj".
    std::string full_name(const std::string& part) const;
    bool has(const std::string& part) const {
        return static_cast<bool>(folder_.find_raw(name(part)));
    }
    bool has(const std::string& part, const char* dtype) const;

    // Functions throw Error with file and tensor if there is no such part, or if it is another one.
    RawTensor take(const std::string& part) const;
    const std::byte* take(const std::string& part, const char* dtype,
                          const std::vector<int64_t>& shape) const;
    FloatPart floats(const std::string& part) const;
    FloatPart floats(const std::string& part, const std::vector<int64_t>& shape) const;

    // Throws Error that begins with the part's file and name.
    template <class... Texts>
    [[noreturn]] void refuse(const std::string& part, const Texts&... texts) const {
        fail(place(part), concat(texts...));
    }
    template <class... Texts>
    void check(bool holds, const std::string& part, const Texts&... texts) const {
        if (!holds) refuse(part, texts...);
    }

  private:
    std::string name(const std::string& part) const { return module_ + "." + part; }
    std::string place(const std::string& part) const;  // "FILE: tensor 'NAME': "

    SafetensorsDirectory& folder_;
    std::string module_;
};

}  // namespace hark
