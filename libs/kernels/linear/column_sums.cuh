// Sums of columns: over the partial sums that blocks have left, in one order.
#pragma once

#include <algorithm>

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// to (columns) += the sum of `partial` (parts, stride) f32's columns from `first` on.
void add_partials(Context& ctx, Tensor to, Tensor partial, int64_t first);

// How many blocks of a kernel the GPU holds at once.
template <class Kernel>
int64_t blocks_at_once(const Context& ctx, Kernel kernel, int64_t threads, size_t shared_bytes) {
    int multiprocessors = 0, of_one = 0;
    CUDA_CHECK(
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, ctx.device_index));
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &of_one, kernel, static_cast<int>(threads), shared_bytes));
    return int64_t{multiprocessors} * std::max(of_one, 1);
}

// db (N) += the sum of dy's rows, dy (T, N), in an order that the shape alone fixes.
void add_rows(Context& ctx, Tensor db, Tensor dy);

}  // namespace hark::cuda
