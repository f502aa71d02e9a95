// latent_append on the GPU: one block per row.
#include "kernels/batch_layout.h"
#include "kernels/kv_cache/cache_rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kLatentThreads = 256;

struct LatentArgs {
    void* cache;
    const int *query_start, *slot, *length, *position;
    const float *frequencies, *norm;
    float scale, eps;
    int64_t slots, capacity;
    int heads, head, width, half, blocks;  // half: number of frequencies; blocks: per sequence
};

// Channels 2 i and 2 i + 1 of the last ones of a part, turned.
template <class X>
__device__ float2 turned_pair(const LatentArgs& args, const X* from, int i, float position) {
    float sine, cosine;
    sincosf(position * args.frequencies[i], &sine, &cosine);
    const float c = cosine * args.scale, s = sine * args.scale;
    const float even = to_f32(from[2 * i]), odd = to_f32(from[2 * i + 1]);
    return {even * c - odd * s, odd * c + even * s};
}

// Block (row j of the sequence, b). A place outside the cache is not written.
template <class X, class To>
__global__ void __launch_bounds__(kLatentThreads)
    latent_kernel(LatentArgs args, X* absorbed, const X* q, X* latent) {
    pdl_trigger();
    __shared__ float partial[kLatentThreads / 32];
    const int b = blockIdx.y, start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int j = blockIdx.x, channels = args.width - 2 * args.half;
    const int64_t p = args.length[b] - n + j, place = p % args.capacity;
    const int64_t slot = slot_of(args, b, p);
    const bool is_place = slot >= 0;
    pdl_wait();
    if (j >= n) return;
    const int64_t t = start + j;
    const auto position = static_cast<float>(args.position[t]);
    X* row = latent + t * args.width;
    To* to = static_cast<To*>(args.cache) + (slot * args.capacity + place) * args.width;
    const auto write = [&](int c, float value) {
        row[c] = from_f32<X>(value);
        if (is_place) to[c] = from_f32<To>(value);
    };
    float squares = 0;
    for (int c = threadIdx.x; c < channels; c += kLatentThreads) {
        const float x = to_f32(row[c]);
        squares = fmaf(x, x, squares);
    }
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = squares;
    __syncthreads();
    float sum = 0;
    for (const float part : partial) sum += part;
    const float factor = rsqrtf(sum / channels + args.eps);
    for (int c = threadIdx.x; c < channels; c += kLatentThreads)
        write(c, to_f32(row[c]) * factor * args.norm[c]);
    // The row's own pairs, then those of each head's query.
    for (int i = threadIdx.x; i < (args.heads + 1) * args.half; i += kLatentThreads) {
        const int h = i / args.half - 1, pair = i % args.half;
        if (h < 0) {
            const float2 turned = turned_pair(args, row + channels, pair, position);
            write(channels + 2 * pair, turned.x);
            write(channels + 2 * pair + 1, turned.y);
            continue;
        }
        const int64_t end = t * args.heads + h + 1;
        const float2 turned =
            turned_pair(args, q + end * args.head - 2 * args.half, pair, position);
        X* query = absorbed + end * args.width - 2 * args.half;
        query[2 * pair] = from_f32<X>(turned.x);
        query[2 * pair + 1] = from_f32<X>(turned.y);
    }
}

}  // namespace

void latent_append(Context& ctx, Tensor cache, Tensor absorbed, Tensor q, Tensor latent,
                   int64_t heads, Tensor position, const Rope& rope, const Norm& norm,
                   const BatchLayout& rows) {
    if (rows.few > 0) {
        for (const BatchLayout& part : parts_of(rows))
            cuda::latent_append(ctx, cache, absorbed, q, latent, heads, position, rope, norm, part);
        return;
    }
    enter(ctx, {&cache, &absorbed, &q, &latent, &position, &rope.frequencies, &norm.weight,
                &rows.query_start, &rows.block_table, &rows.length});
    if (rows.sequences() == 0 || rows.max_queries <= 0) return;
    const bool quantized = cache.dtype == Dtype::q8_0;
    const LatentArgs args{cache.data,
                          rows.query_start.as<int32_t>(),
                          rows.block_table.as<int32_t>(),
                          rows.length.as<int32_t>(),
                          position.as<int32_t>(),
                          rope.frequencies.as<float>(),
                          norm.weight.as<float>(),
                          rope.scale,
                          norm.eps,
                          quantized ? 0 : cache.dim(0),  // written below
                          cache.dim(2),
                          static_cast<int>(heads),
                          static_cast<int>(q.dim(1) / heads),
                          static_cast<int>(cache.dim(3)),
                          static_cast<int>(rope.frequencies.dim(0)),
                          static_cast<int>(rows.blocks())};
    const dim3 grid(static_cast<unsigned>(rows.max_queries),
                    static_cast<unsigned>(rows.sequences()));
    with_float_type(q.dtype, [&](auto x_value) {
        with_float_type(quantized ? q.dtype : cache.dtype, [&](auto to_value) {
            using X = decltype(x_value);
            pdl_launch(ctx, latent_kernel<X, decltype(to_value)>, grid, kLatentThreads, 0, args,
                       static_cast<X*>(absorbed.data), static_cast<const X*>(q.data),
                       static_cast<X*>(latent.data));
        });
    });
    if (quantized) append_q8_0(ctx, cache, cache, {latent}, {latent}, rows);
}

}  // namespace hark::cuda
