// Sums of columns from the partial sums of blocks, in one fixed order.
#pragma once

#include <algorithm>

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// to (columns) += the column sums of `partial` (parts, stride) f32, from column `first`.
void add_partials(Context& ctx, Tensor to, Tensor partial, int64_t first);

// Number of blocks of a kernel that the GPU holds at once.
template <class Kernel>
int64_t blocks_at_once(const Context& ctx, Kernel kernel, int64_t threads, size_t shared_bytes) {
    int multiprocessors = 0, of_one = 0;
    CUDA_CHECK(
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, ctx.device_index));
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &of_one, kernel, static_cast<int>(threads), shared_bytes));
    return int64_t{multiprocessors} * std::max(of_one, 1);
}

// db (N) += the sum of dy's rows, dy (T, N). The shape alone fixes the order.
void add_rows(Context& ctx, Tensor db, Tensor dy);

}  // namespace hark::cuda
