// Products in parts of K: how the tiles of a product are divided among blocks, and the kernel that
// adds the parts and applies the epilogue.
#pragma once

#include "kernels/elementwise/rows.cuh"
#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {

// Tiles of `outputs` x `rows`, the tiles of rows of the same outputs one after the other, each
// of `chunks` chunks of K. A block takes `per_block` of all chunks in their order. What it sums of
// a tile is a part of it, of parts (number in the tile, T, N).
struct TileParts {
    int outputs, rows, row_tiles, tiles, chunks, per_block;

    TileParts(const SmallMArgs& args, int outputs, int rows, int64_t chunks)
        : outputs(outputs),
          rows(rows),
          row_tiles(static_cast<int>(ceil_div(args.rows, rows))),
          tiles(row_tiles * static_cast<int>(ceil_div(args.n + args.up, outputs))),
          chunks(static_cast<int>(chunks)),
          per_block(this->chunks) {}

    __host__ __device__ int units() const { return tiles * chunks; }
    int blocks() const { return static_cast<int>(ceil_div(units(), per_block)); }
    __host__ __device__ int first_block(int tile) const { return tile * chunks / per_block; }
    __host__ __device__ int parts(int tile) const {
        return ((tile + 1) * chunks - 1) / per_block - first_block(tile) + 1;
    }
    int most_parts() const {
        int most = 0;
        for (int tile = 0; tile < tiles; ++tile) most = std::max(most, parts(tile));
        return most;
    }
    __device__ int tile_of(int row, int output) const {
        return output / outputs * row_tiles + row / rows;
    }
};

// y of a row's outputs from n on, V of them, from the parts (part, T, N).
template <int V>
__global__ void __launch_bounds__(256)
    add_parts_kernel(SmallMArgs args, TileParts division, const float* parts) {
    pdl_trigger();
    pdl_wait();
    const int64_t n = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V;
    if (n >= args.n) return;
    const int64_t width = args.n + args.up;
    const auto sum_from = [&](int64_t output) {
        const auto row = static_cast<int>(blockIdx.y);
        const int count = division.parts(division.tile_of(row, static_cast<int>(output)));
        Pack<float, V> sum{};
#pragma unroll 4
        for (int part = 0; part < count; ++part) {
            const auto values = load_pack<V>(parts + (part * args.rows + row) * width + output);
            for (int v = 0; v < V; ++v) sum.values[v] += values.values[v];
        }
        return sum;
    };
    const int64_t at = blockIdx.y * args.n + n;
    const Pack<float, V> sum = sum_from(n);
    Pack<float, V> up{};
    if (args.up > 0) up = sum_from(args.up + n);
    Pack<float, V> values;
#pragma unroll
    for (int v = 0; v < V; ++v) {
        values.values[v] = apply_epilogue(args, epilogue_params(args, n + v), sum.values[v],
                                          residual_at(args, at + v));
        if (args.up > 0)
            values.values[v] = gated_value(
                args, values.values[v],
                apply_epilogue(args, epilogue_params(args, args.up + n + v), up.values[v], 0));
    }
    if (V > 1 && args.y_type == Dtype::f16)
        return store_pack(static_cast<__half*>(args.y) + at, convert_pack<__half>(values));
    for (int v = 0; v < V; ++v) store_any(args.y, args.y_type, at + v, values.values[v]);
}

inline void add_parts(Context& ctx, const SmallMArgs& args, const TileParts& division,
                      const float* parts) {
    constexpr int kThreads = 256, kWide = 4;
    const bool wide = args.n % kWide == 0 && reinterpret_cast<uintptr_t>(args.y) % 8 == 0;
    const dim3 blocks(static_cast<unsigned>(ceil_div(args.n, kThreads * (wide ? kWide : 1))),
                      static_cast<unsigned>(args.rows));
    pdl_launch(ctx, wide ? add_parts_kernel<kWide> : add_parts_kernel<1>, blocks, kThreads, 0,
                 args, division, parts);
}

}  // namespace hark::cuda
