// The block table of a batch on the host, for loops of the CPU.
#pragma once

#include "kernels/ops.h"

namespace hark {

// Position p of sequence b is row p % size of block table[b * per_sequence + p / size].
struct BlockTable {
    const int32_t* table;
    int64_t per_sequence, size;

    // Of a cache (blocks, H, S, D).
    BlockTable(const BatchLayout& rows, const Tensor& cache)
        : table(rows.block_table.as<int32_t>()), per_sequence(rows.blocks()), size(cache.dim(2)) {}

    const int32_t* of_sequence(int64_t b) const { return table + b * per_sequence; }
    // The row of the cache seen as (blocks * H * S, D).
    int64_t row(int64_t b, int64_t p, int64_t heads, int64_t h) const {
        return (of_sequence(b)[p / size] * heads + h) * size + p % size;
    }
};

}  // namespace hark
