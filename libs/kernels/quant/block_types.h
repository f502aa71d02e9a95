// The values of ggml's quantised blocks, for the CPU and for a GPU. The list of the types is
// core/quantized_types.def; blocks/ has a header for each, or for several that are alike. Source
// of the layouts and formulas: ggml's ggml-common.h (block_*) and ggml-quants.c (dequantize_row_*).
//
// A block is cut into groups of kGroup neighbouring values. Value j of group g is
//
//     scale(g) * quant(g, j)               without kHasMin
//     scale(g) * quant(g, j) + min(g)      with it: q4_1, q5_1, q2_k, q4_k, q5_k
//
// kShared neighbouring values, one group or two, have the same scale and min. quant<Lanes>()
// returns value j, or a vector of j and the values after it, which may continue in the next group
// if g is even: Lanes reads bytes and bits. Blocks whose quants are numbers as stored less a constant
// also have raw_quant(), without the subtraction, and kOffset, the constant. A shift to the right is followed by a mask, since lanes
// of the CPU's panels have four bytes.
// A quant fits eight bits with its sign. A scale has at most 19 significant bits, and its product
// with a quant 24: the product is exact in float32 and the sum is rounded once, fused or not. So
// every processor gives the same bits.
#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "kernels/quant/all_blocks.h"  // includes blocks/*.h; made by CMake

namespace hark {

#define HARK_QUANTIZED(name, Block, values, bytes, ...) \
    static_assert(Block::kValues == values && Block::kBytes == bytes);
#include "core/quantized_types.def"
#undef HARK_QUANTIZED

// Calls use(block type {}) for a dtype that is_quantized().
template <class Use>
auto with_block_type(Dtype dtype, const Use& use) {
    switch (dtype) {
#define HARK_QUANTIZED(name, Block, ...) \
    case Dtype::name:                    \
        return use(Block{});
#include "core/quantized_types.def"
#undef HARK_QUANTIZED
        default:
            __builtin_unreachable();
    }
}

// Number of neighbouring values with the same scale and min.
inline int64_t values_that_share(Dtype dtype) {
    return with_block_type(dtype, [](auto type) { return int64_t{decltype(type)::kShared}; });
}

// Whether a type has kHasMin.
inline bool has_minima(Dtype dtype) {
    return with_block_type(dtype, [](auto type) { return decltype(type)::kHasMin; });
}

}  // namespace hark
