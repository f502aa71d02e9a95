// What the products of some rows have in common whose blocks form clusters that share a tile's
// sums.
#pragma once

#include "kernels/cuda/hopper.cuh"
#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda::small_m_work {

using hopper::cluster_rank;

template <class S>
struct Barriers {
    uint64_t full[S::kStages], empty[S::kStages];
};

// The work of a block: a tile, and the slices [slice, last) of its sums. Blocks of the same outputs
// run at about the same time: their weights are read from memory once.
template <class S>
struct Work {
    int rank, row, n, slice, last;

    __device__ explicit Work(const SmallMArgs& args) : rank(S::kSplit == 1 ? 0 : cluster_rank()) {
        const int tile = static_cast<int>(blockIdx.x) / S::kSplit;
        const int row_tiles = static_cast<int>((args.rows + S::kRows - 1) / S::kRows);
        row = tile % row_tiles * S::kRows;
        n = tile / row_tiles * S::kOutputs;
        slice = args.slices * rank / S::kSplit;
        last = args.slices * (rank + 1) / S::kSplit;
    }
};

}  // namespace hark::cuda::small_m_work
