#include "kernels/attention/decode_parts.cuh"

namespace hark::cuda {
namespace {

// Block (h, row): adds the parts of a query's result in their order, scaled to their common
// maximum. Missing parts have weight zero. Shared memory: two floats per part. D <= Threads.
template <int Threads>
__global__ void __launch_bounds__(Threads)
    combine_kernel(AttentionArgs args, float* parts, int splits) {
    pdl_trigger();
    extern __shared__ float weights[];
    __shared__ float shared[Threads / 32];
    float* sums = weights + splits;
    const int h = blockIdx.x, b = blockIdx.y / args.max_queries, j = blockIdx.y % args.max_queries;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int c = threadIdx.x, stride = args.d + 2;
    pdl_wait();
    if (j >= n) return;
    const float* part = part_of(parts, args, splits, blockIdx.y, h, 0);
    constexpr int kFirst = 12;  // requested at once: 1500 keys are 12 parts
    float values[kFirst];
#pragma unroll
    for (int s = 0; s < kFirst; ++s)
        values[s] = s < splits && c < args.d ? part[s * stride + c] : 0;
    float largest = -INFINITY, numerator = 0, denominator = 0;
    for (int s = threadIdx.x; s < splits; s += Threads) {
        weights[s] = part[s * stride + args.d];
        sums[s] = part[s * stride + args.d + 1];
        largest = fmaxf(largest, weights[s]);
    }
    largest =
        over_block<Threads / 32>(largest, shared, [](float x, float y) { return fmaxf(x, y); });
    for (int s = threadIdx.x; s < splits; s += Threads) weights[s] = exp2_from(weights[s], largest);
    __syncthreads();
    if (c >= args.d) return;
    const auto add = [&](int s, float value) {
        numerator += weights[s] * value;
        denominator += weights[s] * sums[s];
    };
#pragma unroll
    for (int s = 0; s < kFirst; ++s)
        if (s < splits) add(s, values[s]);
#pragma unroll 8
    for (int s = kFirst; s < splits; ++s) add(s, part[s * stride + c]);
    write_result(args, start + j, h, c, numerator, denominator + args.sink(h, largest));
}

}  // namespace

int key_splits(const AttentionArgs& args, int keys) {
    int64_t most = ceil_div(args.max_length, keys);
    // A window may begin at the last key of a range.
    if (args.window > 0) most = std::min<int64_t>(most, (args.window - 2 + keys) / keys + 1);
    return static_cast<int>(std::max<int64_t>(1, most));
}

void combine_parts(Context& ctx, const AttentionArgs& args, float* parts, int splits) {
    if (splits == 1) return;
    const dim3 grid(static_cast<unsigned>(args.heads),
                    static_cast<unsigned>(args.sequences * args.max_queries));
    const auto combine = [&](auto kernel, int threads) {
        pdl_launch(ctx, kernel, grid, threads, 2 * static_cast<size_t>(splits) * sizeof(float),
                   args, parts, splits);
    };
    if (args.d <= 128) return combine(combine_kernel<128>, 128);
    if (args.d <= 256) return combine(combine_kernel<256>, 256);
    combine(combine_kernel<kMostHeadChannels>, kMostHeadChannels);
}

}  // namespace hark::cuda
