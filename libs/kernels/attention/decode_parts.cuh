// Attention of few queries whose keys are split over blocks: what the blocks leave and how it
// becomes the result.
#pragma once

#include "kernels/attention/attention_kernels.cuh"

namespace hark::cuda {

constexpr int kSplit = 128;          // keys per block
constexpr int64_t kFewBlocks = 512;  // up to which latency bounds a kernel, not bandwidth

// A block's part of a query's result: D sums of p * v, then the maximum and the sum of p.
__device__ inline float* part_of(float* parts, const AttentionArgs& args, int splits, int row,
                                 int h, int split) {
    return parts + ((int64_t{row} * args.heads + h) * splits + split) * (args.d + 2);
}

// The part of a query that sees none of the block's keys; by all of its threads.
template <int Threads>
__device__ void write_no_keys(float* part, int d) {
    for (int i = threadIdx.x; i < d + 2; i += Threads) part[i] = i == d ? -INFINITY : 0.0f;
}

// Channel c of row's head h.
__device__ inline void write_result(const AttentionArgs& args, int row, int h, int c,
                                    float numerator, float denominator) {
    const int64_t at = (int64_t{row} * args.heads + h) * args.d + c;
    store_any(args.out, args.out_type, at, denominator > 0 ? numerator / denominator : 0.0f);
}

// The maximum or the sum over the block; `shared` has one value per warp.
template <int Warps, class Combine>
__device__ float over_block(float x, float* shared, Combine combine) {
    for (int step = 16; step > 0; step /= 2) x = combine(x, __shfl_xor_sync(0xffffffff, x, step));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = shared[0];
    for (int warp = 1; warp < Warps; ++warp) x = combine(x, shared[warp]);
    __syncthreads();
    return x;
}

// The ranges of `keys` keys, from a multiple of it on, that any query of the call may see.
int key_splits(const AttentionArgs& args, int keys);

// `parts` (sequences * max_queries, H, splits, D + 2) become the result, unless splits is 1.
void combine_parts(Context& ctx, const AttentionArgs& args, float* parts, int splits);

// The parts of a small grid whose q, keys, values and result are of one float type, the keys in one
// block per sequence, without options. Returns false, and does nothing, for other calls.
bool attention_decode_plain(Context& ctx, const AttentionArgs& args, float* parts, int splits);

}  // namespace hark::cuda
