// Attention of few queries over keys in one block each, all of one float type, without options:
// split_kernel's sums by a kernel that has only the code which such a call needs. To fetch more
// takes as long as the work of few blocks.
#include "kernels/attention/decode_parts.cuh"
#include "kernels/kv_cache/cache_rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kGroupsOfPart = 16;  // of threads, each of which reads a key at a time
constexpr int kKeysOfThread = kSplit / kGroupsOfPart;

// Block (split, h, row), as split_kernel's: thread t has 8 channels of the keys i * kGroupsOfPart +
// t / G. Two barriers: every thread has its keys' scores and probabilities.
template <class T, int G>
__global__ void __launch_bounds__(kGroupsOfPart* G)
    plain_kernel(AttentionArgs args, float* parts, int splits) {
    pdl_trigger();
    constexpr int kHead = 8 * G, kWarps = kGroupsOfPart * G / 32;
    __shared__ float largest_of[kWarps], p_of[kSplit], sums[kWarps][kHead];
    const auto queries = static_cast<unsigned>(args.max_queries);
    const int h = blockIdx.y, b = blockIdx.z / queries, j = blockIdx.z % queries;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    if (j >= n) return pdl_wait();
    const int first = blockIdx.x * kSplit, end = min(args.visible(b, n, j) - first, kSplit);
    float* part = part_of(parts, args, splits, blockIdx.z, h, blockIdx.x);
    if (end <= 0 && splits > 1) {
        pdl_wait();
        return write_no_keys<kGroupsOfPart * G>(part, kHead);
    }
    const int group = threadIdx.x / G, channel = threadIdx.x % G * 8;
    const int64_t at = args.cache_offset(b, h) + int64_t{first + group} * kHead + channel;
    CachePack<T> k[kKeysOfThread], v[kKeysOfThread], query;
    const auto load = [&](int from, int to) {
#pragma unroll
        for (int i = 0; i < kKeysOfThread; ++i) {
            const int key = i * kGroupsOfPart + group;
            if (key < from || key >= to) continue;
            k[i].load(args.keys, at + i * kGroupsOfPart * kHead);
            v[i].load(args.values, at + i * kGroupsOfPart * kHead);
        }
    };
    const int ready = max(0, min(args.ready_keys(b, n) - first, end));
    load(0, ready);
    pdl_wait();
    query.load(args.q, (start + j) * args.q_stride + h * kHead + channel);
    if (ready < end) load(ready, end);
    const Pack<float, 8> q = query.values();
    float scores[kKeysOfThread] = {}, largest = -INFINITY;
#pragma unroll
    for (int i = 0; i < kKeysOfThread; ++i) {
        const Pack<float, 8> key = k[i].values();
        for (int c = 0; c < 8; ++c) scores[i] = fmaf(q.values[c], key.values[c], scores[i]);
    }
#pragma unroll
    for (int step = G / 2; step > 0; step /= 2)
#pragma unroll
        for (int i = 0; i < kKeysOfThread; ++i)
            scores[i] += __shfl_xor_sync(0xffffffff, scores[i], step);
#pragma unroll
    for (int i = 0; i < kKeysOfThread; ++i) {
        scores[i] = i * kGroupsOfPart + group < end ? scores[i] * args.scale_log2 : -INFINITY;
        largest = fmaxf(largest, scores[i]);
    }
#pragma unroll
    for (int step = 16; step >= G; step /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) largest_of[warp] = largest;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kWarps; ++i) largest = fmaxf(largest, largest_of[i]);
    float own[8] = {};
#pragma unroll
    for (int i = 0; i < kKeysOfThread; ++i) {
        const float p = exp2_from(scores[i], largest);
        if (threadIdx.x % G == 0) p_of[i * kGroupsOfPart + group] = p;
        const Pack<float, 8> value = v[i].values();
        for (int c = 0; c < 8; ++c) own[c] = fmaf(p, value.values[c], own[c]);
    }
#pragma unroll
    for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int step = 16; step >= G; step /= 2)
            own[c] += __shfl_xor_sync(0xffffffff, own[c], step);
        if (threadIdx.x % 32 < G) sums[warp][channel + c] = own[c];
    }
    __syncthreads();
    if (threadIdx.x >= kHead) return;
    float sum = 0, total = 0;  // of 32 keys each, then of these: over_block's order
    float of_keys[kSplit / 32];
#pragma unroll
    for (int i = 0; i < kSplit / 32; ++i) of_keys[i] = warp_sum(p_of[32 * i + threadIdx.x % 32]);
    sum = of_keys[0];
#pragma unroll
    for (int i = 1; i < kSplit / 32; ++i) sum += of_keys[i];
#pragma unroll
    for (int i = 0; i < kWarps; ++i) total += sums[i][threadIdx.x];
    if (splits > 1) {
        part[threadIdx.x] = total;
        if (threadIdx.x == 0) {
            part[kHead] = largest;
            part[kHead + 1] = sum;
        }
        return;
    }
    static_cast<T*>(args.out)[(int64_t{start + j} * args.heads + h) * kHead + threadIdx.x] =
        from_f32<T>(sum > 0 ? total / sum : 0.0f);
}

}  // namespace

bool attention_decode_plain(Context& ctx, const AttentionArgs& args, float* parts, int splits) {
    const bool one_type = args.cache_type != Dtype::q8_0 && args.q_type == args.cache_type &&
                          args.out_type == args.cache_type;
    const bool aligned = args.q_stride % 8 == 0 && reinterpret_cast<uintptr_t>(args.q) % 16 == 0;
    if (!one_type || !aligned || args.blocks != 1 || args.has_options() ||
        (args.d != 64 && args.d != 128))
        return false;
    const dim3 grid(static_cast<unsigned>(splits), static_cast<unsigned>(args.heads),
                    static_cast<unsigned>(args.sequences * args.max_queries));
    with_float_type(args.cache_type, [&](auto type) {
        using T = decltype(type);
        pdl_launch(ctx, args.d == 64 ? plain_kernel<T, 8> : plain_kernel<T, 16>, grid,
                   static_cast<unsigned>(kGroupsOfPart * args.d / 8), 0, args, parts, splits);
    });
    return true;
}

}  // namespace hark::cuda
