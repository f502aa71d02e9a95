#include "kernels/attention/decode_parts.cuh"

namespace hark::cuda {
namespace {

constexpr int kFirst = 12;  // parts that a thread requests at once: 1500 keys are 12

// Block (h, row): adds the parts of a query's result in their order, scaled to their common
// maximum. Missing parts have weight zero. D <= Threads. Up to kFirst parts: no thread waits for
// another. The same sums as combine_kernel's.
template <int Threads>
__global__ void __launch_bounds__(Threads)
    combine_few_kernel(AttentionArgs args, float* parts, int splits) {
    pdl_trigger();
    const auto queries = static_cast<unsigned>(args.max_queries);
    const int h = blockIdx.x, b = blockIdx.y / queries, j = blockIdx.y % queries;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int c = threadIdx.x, stride = args.d + 2;
    pdl_wait();
    if (j >= n || c >= args.d) return;
    const float* part = part_of(parts, args, splits, blockIdx.y, h, 0);
    float maxima[kFirst], sums[kFirst], values[kFirst];
#pragma unroll
    for (int s = 0; s < kFirst; ++s) {
        const bool there = s < splits;
        values[s] = there ? part[s * stride + c] : 0;
        maxima[s] = there ? part[s * stride + args.d] : -INFINITY;
        sums[s] = there ? part[s * stride + args.d + 1] : 0;
    }
    float largest = -INFINITY, numerator = 0, denominator = 0;
#pragma unroll
    for (int s = 0; s < kFirst; ++s) largest = fmaxf(largest, maxima[s]);
#pragma unroll
    for (int s = 0; s < kFirst; ++s) {
        const float weight = exp2_from(maxima[s], largest);
        numerator += weight * values[s];
        denominator += weight * sums[s];
    }
    write_result(args, start + j, h, c, numerator, denominator + args.sink(h, largest));
}

// The same of any number of parts. Shared memory: two floats per part.
template <int Threads>
__global__ void __launch_bounds__(Threads)
    combine_kernel(AttentionArgs args, float* parts, int splits) {
    pdl_trigger();
    extern __shared__ float weights[];
    __shared__ float shared[Threads / 32];
    float* sums = weights + splits;
    const auto queries = static_cast<unsigned>(args.max_queries);
    const int h = blockIdx.x, b = blockIdx.y / queries, j = blockIdx.y % queries;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int c = threadIdx.x, stride = args.d + 2;
    pdl_wait();
    if (j >= n) return;
    const float* part = part_of(parts, args, splits, blockIdx.y, h, 0);
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
    if (args.d <= 128)
        return combine(splits <= kFirst ? combine_few_kernel<128> : combine_kernel<128>, 128);
    if (args.d <= 256) return combine(combine_kernel<256>, 256);
    combine(combine_kernel<kMostHeadChannels>, kMostHeadChannels);
}

}  // namespace hark::cuda
