// Tensor: a view of typed memory on one device. WeightStore, Arena and State own the memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace hark {

// After the numbers, ggml's quantised blocks: a row's consecutive values share a block's scales.
enum class Dtype : uint8_t {
    f32,
    f16,
    bf16,
    i8,
    fp8,
    i32,
    i64,
    u8,
#define HARK_QUANTIZED(name, ...) name,
#include "core/quantized_types.def"
#undef HARK_QUANTIZED
};
inline constexpr Dtype kQuantizedDtypes[] = {
#define HARK_QUANTIZED(name, ...) Dtype::name,
#include "core/quantized_types.def"
#undef HARK_QUANTIZED
};
enum class Device : uint8_t { cpu, cuda };

// IEEE half and bfloat16 as stored; arithmetic converts them to float first (core/half.h).
struct f16_t {
    uint16_t bits;
};
struct bf16_t {
    uint16_t bits;
};
// A float of eight bits, e4m3 (core/fp8.h).
struct fp8_t {
    uint8_t bits;
};

// The layout of values in memory: `values` of them take `bytes`. One of a number, 32 or 256 of a
// block.
struct BlockSize {
    int64_t values, bytes;
};
BlockSize block_size(Dtype dtype);
inline bool is_quantized(Dtype dtype) { return dtype > Dtype::u8; }
// Whether a matrix of it has a scale per row.
inline bool has_row_scales(Dtype dtype) { return dtype == Dtype::i8 || dtype == Dtype::fp8; }
// The bytes of n consecutive values of a row. Throws Error where n is not in whole blocks.
size_t row_bytes(Dtype dtype, int64_t n);
size_t size_of(Dtype dtype);                // of one number; throws Error for blocks
const char* name_of(Dtype dtype);           // "f32", as in --dtype
Dtype dtype_named(std::string_view name);   // throws Error if there is none
const char* safetensors_name(Dtype dtype);  // "F32", as in a safetensors header; throws for blocks

template <class T>
constexpr Dtype dtype_of();
template <>
constexpr Dtype dtype_of<float>() {
    return Dtype::f32;
}
template <>
constexpr Dtype dtype_of<f16_t>() {
    return Dtype::f16;
}
template <>
constexpr Dtype dtype_of<bf16_t>() {
    return Dtype::bf16;
}
template <>
constexpr Dtype dtype_of<int8_t>() {
    return Dtype::i8;
}
template <>
constexpr Dtype dtype_of<fp8_t>() {
    return Dtype::fp8;
}
template <>
constexpr Dtype dtype_of<int32_t>() {
    return Dtype::i32;
}
template <>
constexpr Dtype dtype_of<int64_t>() {
    return Dtype::i64;
}
template <>
constexpr Dtype dtype_of<uint8_t>() {
    return Dtype::u8;
}

// Row-major and contiguous; up to four dimensions.
struct Tensor {
    static constexpr int kMaxRank = 4;

    void* data = nullptr;
    Dtype dtype = Dtype::f32;
    Device device = Device::cpu;
    int rank = 0;
    std::array<int64_t, kMaxRank> shape{};

    Tensor() = default;
    Tensor(void* data, Dtype dtype, std::initializer_list<int64_t> shape,
           Device device = Device::cpu);

    explicit operator bool() const { return data != nullptr; }
    int64_t dim(int i) const { return shape[i < 0 ? rank + i : i]; }
    int64_t size() const;  // elements
    int64_t rows() const;  // elements / last dimension
    size_t bytes() const;  // throws Error where rows are not in whole blocks

    // Typed pointer; throws Error where the dtype is another one.
    template <class T>
    T* as() const {
        if (dtype != dtype_of<T>()) fail_dtype(dtype_of<T>());
        return static_cast<T*>(data);
    }
    // The part [begin, end) of the first dimension.
    Tensor slice(int64_t begin, int64_t end) const;
    // The same elements seen with another shape; throws Error where the sizes differ.
    Tensor reshaped(std::initializer_list<int64_t> shape) const;

  private:
    [[noreturn]] void fail_dtype(Dtype wanted) const;
};

// "f32 (2, 1500, 384)". require() calls it for a tensor among its parts.
std::string describe(const Tensor& tensor);

}  // namespace hark
