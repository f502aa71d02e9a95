#include "kernels/quant/quantize.h"

#include <cmath>

#include "core/error.h"
#include "kernels/cpu/cpu.h"
#include "kernels/quant/block_types.h"

namespace hark {
namespace {

// No type's scale times its levels comes near it, and the search's squares of it fit a float.
constexpr float kMostValue = 1e15f;

template <class Block>
constexpr bool kIsMade = requires(uint8_t* to, const float* x) {
    Block::quantize(to, x);
};

}  // namespace

void dequantize(float* to, const void* blocks, Dtype dtype, int64_t n) {
    require(is_quantized(dtype), "dequantize: expected a dtype of blocks, found ", name_of(dtype));
    row_bytes(dtype, n);  // checks n
    cpu_kernels().dequantize(to, blocks, dtype, n);
}

bool can_quantize(Dtype dtype) {
    return is_quantized(dtype) &&
           with_block_type(dtype, [](auto type) { return kIsMade<decltype(type)>; });
}

void quantize(void* blocks, const float* from, Dtype dtype, int64_t n) {
    require(can_quantize(dtype), "quantize: ", name_of(dtype), " is not made");
    row_bytes(dtype, n);  // checks n
    for (int64_t i = 0; i < n; ++i)
        require(std::abs(from[i]) < kMostValue, "quantize: expected finite numbers below ",
                kMostValue, ", found ", from[i]);
    with_block_type(dtype, [&](auto type) {
        using Block = decltype(type);
        auto* to = static_cast<uint8_t*>(blocks);
        if constexpr (kIsMade<Block>)
            for (int64_t i = 0; i < n; i += Block::kValues, to += Block::kBytes)
                Block::quantize(to, from + i);
    });
}

}  // namespace hark
