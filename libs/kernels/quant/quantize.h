// ggml's quantised blocks: to floats and from floats. kernels/quant/block_types.h has the layouts.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace hark {

// n values of whole blocks, of a dtype that is_quantized(); bit-identical to ggml's. Throws Error
// if n is not a number of whole blocks.
void dequantize(float* to, const void* blocks, Dtype dtype, int64_t n);

// Whether quantize() makes blocks of this dtype.
bool can_quantize(Dtype dtype);

// n values to whole blocks. q4_0 to q8_0: bit-identical to gguf-py; the others have scales of least
// squared error (scale_search.h). Throws Error for another dtype, n not a number of whole blocks, a
// value that is not finite or is beyond all types, or a scale beyond f16.
void quantize(void* blocks, const float* from, Dtype dtype, int64_t n);

}  // namespace hark
