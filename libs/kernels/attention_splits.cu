#include "kernels/attention_kernels.cuh"

namespace hark::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kChannels = 8;  // of a head, read by one thread
constexpr int kSplit = 256;   // keys of a block

// A block's part of a query's result: D sums of p * v, then the maximum and the sum of p.
__device__ float* part_of(float* parts, const AttentionArgs& args, int splits, int row, int h,
                          int split) {
    return parts + ((int64_t{row} * args.heads + h) * splits + split) * (args.d + 2);
}

__device__ void write(const AttentionArgs& args, int row, int h, int c, float numerator,
                      float denominator) {
    const int64_t at = (int64_t{row} * args.heads + h) * args.d + c;
    store_any(args.out, args.out_type, at, denominator > 0 ? numerator / denominator : 0.0f);
}

// The largest or the sum over the block; `shared` holds a value a warp.
template <class Combine>
__device__ float over_block(float x, float* shared, Combine combine) {
    for (int step = 16; step > 0; step /= 2) x = combine(x, __shfl_xor_sync(0xffffffff, x, step));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = shared[0];
    for (int warp = 1; warp < kWarps; ++warp) x = combine(x, shared[warp]);
    __syncthreads();
    return x;
}

// Block (split, h, row) with row = b * max_queries + j. G neighbouring threads read one key.
template <class T, int G>
__global__ void __launch_bounds__(kThreads)
    split_kernel(AttentionArgs args, float* parts, int splits) {
    constexpr int kGroups = kThreads / G;
    __shared__ float scores[kSplit], shared[kWarps], sums[kWarps][kMostHeadChannels];
    const int h = blockIdx.y, b = blockIdx.z / args.max_queries, j = blockIdx.z % args.max_queries;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    if (j >= n) return;
    const int first = blockIdx.x * kSplit;
    const int count = max(0, min(args.visible(b, n, j) - first, kSplit));
    const int group = threadIdx.x / G, channel = threadIdx.x % G * kChannels;
    const bool has_channels = channel < args.d;
    const int64_t base = args.cache_offset(b, h) + int64_t{first} * args.d + channel;

    float q[kChannels] = {};
    if (has_channels)
        for (int c = 0; c < kChannels; ++c)
            q[c] = load_any(args.q, args.q_type,
                            int64_t{start + j} * args.q_stride + h * args.d + channel + c);
    const T* keys = static_cast<const T*>(args.keys) + base;
#pragma unroll 4
    for (int i = 0; i < kSplit / kGroups; ++i) {
        const int key = i * kGroups + group;
        float score = 0;
        if (key < count && has_channels) {
            const Pack<T, kChannels> k = load_pack<kChannels>(keys + int64_t{key} * args.d);
            for (int c = 0; c < kChannels; ++c) score = fmaf(q[c], to_f32(k.values[c]), score);
        }
        for (int step = G / 2; step > 0; step /= 2)
            score += __shfl_xor_sync(0xffffffff, score, step);
        if (threadIdx.x % G == 0) scores[key] = key < count ? score * args.scale_log2 : -INFINITY;
    }
    __syncthreads();

    float largest = -INFINITY, sum = 0;
    for (int key = threadIdx.x; key < kSplit; key += kThreads)
        largest = fmaxf(largest, scores[key]);
    largest = over_block(largest, shared, [](float x, float y) { return fmaxf(x, y); });
    for (int key = threadIdx.x; key < kSplit; key += kThreads) {
        const float p = exp2_from(scores[key], largest);
        scores[key] = p;
        sum += p;
    }
    sum = over_block(sum, shared, [](float x, float y) { return x + y; });

    float acc[kChannels] = {};
    const T* values = static_cast<const T*>(args.values) + base;
#pragma unroll 4
    for (int i = 0; i < kSplit / kGroups; ++i) {
        const int key = i * kGroups + group;
        if (key >= count || !has_channels) continue;
        const Pack<T, kChannels> v = load_pack<kChannels>(values + int64_t{key} * args.d);
        for (int c = 0; c < kChannels; ++c) acc[c] = fmaf(scores[key], to_f32(v.values[c]), acc[c]);
    }
    for (int c = 0; c < kChannels; ++c)
        for (int step = 16; step >= G; step /= 2)
            acc[c] += __shfl_xor_sync(0xffffffff, acc[c], step);
    if (threadIdx.x % 32 < G)
        for (int c = 0; c < kChannels; ++c) sums[threadIdx.x / 32][channel + c] = acc[c];
    __syncthreads();

    float* part = part_of(parts, args, splits, blockIdx.z, h, blockIdx.x);
    for (int c = threadIdx.x; c < args.d; c += kThreads) {
        float total = 0;
        for (int warp = 0; warp < kWarps; ++warp) total += sums[warp][c];
        if (splits > 1) {
            part[c] = total;
        } else {  // as combine_kernel would find it
            write(args, start + j, h, c, total, sum);
        }
    }
    if (splits > 1 && threadIdx.x == 0) {
        part[args.d] = largest;
        part[args.d + 1] = sum;
    }
}

// Block (h, row): adds the parts of a query's result, brought to their common maximum.
__global__ void combine_kernel(AttentionArgs args, float* parts, int splits) {
    const int h = blockIdx.x, b = blockIdx.y / args.max_queries, j = blockIdx.y % args.max_queries;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int c = threadIdx.x;
    if (j >= n || c >= args.d) return;
    const float* part = part_of(parts, args, splits, blockIdx.y, h, 0);
    const int stride = args.d + 2;
    float largest = -INFINITY, numerator = 0, denominator = 0;
    for (int s = 0; s < splits; ++s) largest = fmaxf(largest, part[s * stride + args.d]);
    for (int s = 0; s < splits; ++s) {
        const float weight = exp2_from(part[s * stride + args.d], largest);
        numerator += weight * part[s * stride + c];
        denominator += weight * part[s * stride + args.d + 1];
    }
    write(args, start + j, h, c, numerator, denominator);
}

}  // namespace

void attention_by_splits(Context& ctx, const AttentionArgs& args) {
    const Arena::Scope scope(ctx.arena);
    const int splits = static_cast<int>(std::max<int64_t>(1, ceil_div(args.max_length, kSplit)));
    const auto rows = static_cast<unsigned>(args.sequences * args.max_queries);
    float* parts = ctx.arena.tensor(Dtype::f32, {rows, args.heads, splits, args.d + 2}).as<float>();
    const dim3 grid(static_cast<unsigned>(splits), static_cast<unsigned>(args.heads), rows);
    with_float_type(args.cache_type, [&](auto type) {
        using T = decltype(type);
        const auto kernel = args.d <= 64 ? split_kernel<T, 8> : split_kernel<T, 16>;
        kernel<<<grid, kThreads, 0, stream_of(ctx)>>>(args, parts, splits);
    });
    CUDA_CHECK(cudaGetLastError());
    if (splits == 1) return;
    combine_kernel<<<dim3(grid.y, rows), kMostHeadChannels, 0, stream_of(ctx)>>>(args, parts,
                                                                                 splits);
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace hark::cuda
