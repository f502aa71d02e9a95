// add_rows, and the parts that other sums of columns share.
#include "kernels/linear/column_sums.cuh"

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/elementwise/elementwise.cuh"

namespace hark::cuda {
namespace {

constexpr int kColumns = 32, kLanes = 32;  // per block that adds partial sums

__global__ void __launch_bounds__(kColumns* kLanes)
    add_partials_kernel(float* to, const float* __restrict__ partial, int64_t parts,
                        int64_t columns, int64_t stride) {
    __shared__ float sums[kLanes][kColumns];
    const int64_t c = int64_t{blockIdx.x} * kColumns + threadIdx.x;
    float sum = 0;
    if (c < columns) {
#pragma unroll 8
        for (int64_t i = threadIdx.y; i < parts; i += kLanes) sum += partial[i * stride + c];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || c >= columns) return;
    float total = 0;
    for (int i = 0; i < kLanes; ++i) total += sums[i][threadIdx.x];
    to[c] += total;
}

constexpr int kColumnWarps = 8, kAhead = 8;

// partial (gridDim.y, columns): sums of the rows [y * at_once, ...) of x, V columns per lane; a
// warp takes every eighth row.
template <class T, int V>
__global__ void __launch_bounds__(32 * kColumnWarps)
    row_sums_kernel(float* partial, const T* __restrict__ x, int64_t rows, int64_t columns,
                    int64_t at_once) {
    __shared__ float sums[kColumnWarps][V][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t c = (int64_t{blockIdx.x} * 32 + lane) * V;
    const int64_t end = min(rows, (int64_t{blockIdx.y} + 1) * at_once);
    int64_t row = blockIdx.y * at_once + warp;
    float sum[V] = {};
    if (c < columns) {
        const auto add = [&](const Pack<T, V>& values) {
            for (int v = 0; v < V; ++v) sum[v] += to_f32(values.values[v]);
        };
        for (; row + (kAhead - 1) * kColumnWarps < end; row += kAhead * kColumnWarps) {
            Pack<T, V> values[kAhead];
            for (int i = 0; i < kAhead; ++i)
                values[i] = load_pack<V>(x + (row + i * kColumnWarps) * columns + c);
            for (int i = 0; i < kAhead; ++i) add(values[i]);
        }
        for (; row < end; row += kColumnWarps) add(load_pack<V>(x + row * columns + c));
    }
    for (int v = 0; v < V; ++v) sums[warp][v][lane] = sum[v];
    __syncthreads();
    for (int i = threadIdx.x; i < 32 * V; i += 32 * kColumnWarps) {
        const int64_t column = int64_t{blockIdx.x} * 32 * V + i;
        if (column >= columns) return;
        float total = 0;
        for (int w = 0; w < kColumnWarps; ++w) total += sums[w][i % V][i / V];
        partial[blockIdx.y * columns + column] = total;
    }
}

}  // namespace

void add_partials(Context& ctx, Tensor to, Tensor partial, int64_t first) {
    const int64_t columns = to.size();
    const dim3 threads(kColumns, kLanes);
    add_partials_kernel<<<static_cast<unsigned>(ceil_div(columns, kColumns)), threads, 0,
                          stream_of(ctx)>>>(to.as<float>(), partial.as<float>() + first,
                                            partial.dim(0), columns, partial.dim(1));
    CUDA_CHECK(cudaGetLastError());
}

void add_rows(Context& ctx, Tensor db, Tensor dy) {
    const int64_t rows = dy.dim(0), columns = dy.dim(1);
    enter(ctx, {&db, &dy});
    if (dy.size() == 0) return;
    with_activation_type("add_rows", dy, [&](auto value) {
        using T = decltype(value);
        const bool packs = columns % kWidth<T> == 0 && in_16_bytes({dy.data});
        // Enough blocks to fill any GPU, each with enough rows to be worth its partial sums.
        constexpr int64_t kBlocks = 1056, kFewest = 64;
        const int64_t across = ceil_div(columns, 32 * (packs ? kWidth<T> : 1));
        const int64_t at_once = std::max(kFewest, ceil_div(rows, ceil_div(kBlocks, across)));
        const int64_t parts = ceil_div(rows, at_once);
        const Arena::Scope scope(ctx.arena);
        const Tensor partial = ctx.arena.tensor(Dtype::f32, {parts, columns});
        const auto kernel = packs ? row_sums_kernel<T, kWidth<T>> : row_sums_kernel<T, 1>;
        const dim3 blocks(static_cast<unsigned>(across), static_cast<unsigned>(parts));
        kernel<<<blocks, 32 * kColumnWarps, 0, stream_of(ctx)>>>(
            partial.as<float>(), static_cast<const T*>(dy.data), rows, columns, at_once);
        CUDA_CHECK(cudaGetLastError());
        add_partials(ctx, db, partial, 0);
    });
}

}  // namespace hark::cuda
