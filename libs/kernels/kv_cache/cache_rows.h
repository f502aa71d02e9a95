// Rows of a cache in memory, on the CPU: the channels of one head at one position.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace hark {

// Bytes of a row of `channels`. Throws Error where a quantised row is not in whole blocks.
inline int64_t cache_row_bytes(Dtype dtype, int64_t channels) {
    return static_cast<int64_t>(row_bytes(dtype, channels));
}

// Writes row number `row` of the cache, from its D channels: rounded to the cache's type, or as
// blocks of q8_0. Values that are not finite give NaN or infinity.
void store_cache_row(const Tensor& cache, int64_t row, const float* from);

}  // namespace hark
