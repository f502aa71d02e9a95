// Rows of ggml's quantised blocks on the GPU (block_values.h), eight values at a time.
#pragma once

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/quant/block_values.h"

namespace hark::cuda {

constexpr int kBlockPack = 8;  // divides every group

// Values [k, k + 8) of a row; k is a multiple of 8.
template <class Block>
__device__ inline Pack<float, kBlockPack> load_blocks(const uint8_t* row, int64_t k) {
    const uint8_t* block = row + k / Block::kValues * Block::kBytes;
    const int at = static_cast<int>(k % Block::kValues);
    const int g = at / Block::kGroup, j = at % Block::kGroup;
    const float scale = Block::scale(block, g), min = Block::min(block, g);
    Pack<float, kBlockPack> values;
    for (int v = 0; v < kBlockPack; ++v) {
        values.values[v] =
            scale * static_cast<float>(Block::template quant<ScalarLane>(block, g, j + v));
        if (Block::kHasMin) values.values[v] += min;
    }
    return values;
}

// Reads rows of quantised weights, as simt_kernel's Rows.
template <class Block>
struct BlockRows {
    using Stored = uint8_t;
    static constexpr int kVector = kBlockPack, kUnroll = 1;
    static __device__ Pack<float, kBlockPack> load(const uint8_t* row, int64_t k) {
        return load_blocks<Block>(row, k);
    }
};

// Quantised weights need f16 activations, aligned to 16 bytes: those of --dtype auto.
inline void check_half(const char* op, const Tensor& tensor) {
    require(tensor.dtype == Dtype::f16 && reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0, op,
            ": with quantised weights expected f16 activations aligned to 16 bytes, found ",
            tensor);
}

// linear of few rows and quantised weights, on the plain units (small_m_quantized.cu). A row's bits
// do not depend on the other rows.
void small_m_quantized(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then);

// to (rows, K) f16 = the values of quantised rows.
void dequantize(Context& ctx, Tensor to, Tensor from);

}  // namespace hark::cuda
