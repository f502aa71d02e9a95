// The first kernel of absorbed_attention: q' = q_h Wk_h for each head. It requests its weights
// before it waits for the previous kernel.
#include <cuda_pipeline.h>

#include "kernels/absorbed_attention/absorbed_attention.cuh"
#include "kernels/attention/attention_kernels.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {
namespace {

constexpr int kAbsorbColumns = 128, kAbsorbThreads = 128, kAbsorbRows = 64;  // per block
constexpr int kAbsorbSteps = kAbsorbedHead / 16;

template <class T>
struct KeyWeights {
    T values[kAbsorbedHead][kAbsorbColumns + 8];  // the pad lets 8 rows of a fragment hit all banks
    float factors[kAbsorbedHead];                 // one per channel of q
};

// Wk_h's columns from c0, as T.
template <class T, class W>
__device__ void load_key_weights(KeyWeights<T>& shared, const W* from, int c) {
    constexpr int kValues = 16 / sizeof(W), kChunks = kAbsorbColumns / kValues;
    for (int i = threadIdx.x; i < kAbsorbedHead * kChunks; i += kAbsorbThreads) {
        const int row = i / kChunks, column = i % kChunks * kValues;
        if constexpr (sizeof(W) == 2) {
            __pipeline_memcpy_async(&shared.values[row][column], from + int64_t{row} * c + column,
                                    16);
        } else {
            const uint4 v = *reinterpret_cast<const uint4*>(from + int64_t{row} * c + column);
            const uint32_t words[4] = {v.x, v.y, v.z, v.w};
            uint32_t pairs[4][2];
#pragma unroll
            for (int j = 0; j < 4; ++j) bytes_to_pairs(words[j], pairs[j], W(), T());
            uint4* to = reinterpret_cast<uint4*>(&shared.values[row][column]);
            to[0] = {pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1]};
            to[1] = {pairs[2][0], pairs[2][1], pairs[3][0], pairs[3][1]};
        }
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

// Of bytes: the scales of Wk_h's rows belong to q's channels. They are divided by the largest one
// here, so small scales lose no digits. Returns the largest, which scales the result.
template <class T>
__device__ float load_factors(KeyWeights<T>& shared, const float* scales) {
    const float low = scales[threadIdx.x % 32], high = scales[threadIdx.x % 32 + 32];
    const float largest = warp_max(fmaxf(low, high));
    const float inverse = largest > 0 ? 1.0f / largest : 0.0f;
    if (threadIdx.x < 32) {
        shared.factors[threadIdx.x] = low * inverse;
        shared.factors[threadIdx.x + 32] = high * inverse;
    }
    return largest;
}

// A pair of neighbouring channels of q, times their factors.
template <class T>
__device__ uint32_t scaled_pair(uint32_t pair, const float* factors) {
    const T* values = reinterpret_cast<const T*>(&pair);
    return pack(T{}, to_f32(values[0]) * factors[0], to_f32(values[1]) * factors[1]);
}

// Block (128 columns, head, 64 rows). A warp computes 32 of the columns.
template <class T, class W>
__global__ void __launch_bounds__(kAbsorbThreads) absorb_kernel(AbsorbedArgs args) {
    pdl_trigger();
    __shared__ __align__(16) KeyWeights<T> shared;
    __shared__ __align__(16) MmaTile<T, kAbsorbedHead, kAbsorbRows> queries;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int h = blockIdx.y, c0 = blockIdx.x * kAbsorbColumns;
    const W* weights = static_cast<const W*>(args.kv) + int64_t{h} * kAbsorbedHead * args.c + c0;
    float scale = args.scale_log2;
    load_key_weights(shared, weights, args.c);
    if constexpr (sizeof(W) == 1) scale *= load_factors(shared, args.scales + h * kAbsorbedHead);
    __syncthreads();
    uint32_t b[kAbsorbSteps][2][4];  // [step][block of 16 columns]: two halves of each 2 registers
#pragma unroll
    for (int step = 0; step < kAbsorbSteps; ++step)
#pragma unroll
        for (int i = 0; i < 2; ++i)
            load_matrices<true>(b[step][i], &shared.values[step * 16 + lane / 8 % 2 * 8 + lane % 8]
                                                          [(warp * 2 + i) * 16 + lane / 16 * 8]);
    pdl_wait();
    const T* q =
        static_cast<const T*>(args.q) + int64_t{args.first_row} * args.c + h * kAbsorbedHead;
    const int begin = blockIdx.z * kAbsorbRows;
    start_copy<kAbsorbThreads>(queries, q, args.c, begin, args.rows, kAbsorbedHead);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < kAbsorbRows / 16; ++tile) {
        if (begin + tile * 16 >= args.rows) return;
        float sums[2][2][4] = {};
#pragma unroll
        for (int step = 0; step < kAbsorbSteps; ++step) {
            uint32_t x[4];  // rows 0-7 and 8-15, then the same of the next 8 channels
            load_matrices<false>(x,
                                 &queries.values[tile * 16 + lane % 16][step * 16 + lane / 16 * 8]);
            if constexpr (sizeof(W) == 1)
                for (int i = 0; i < 4; ++i)
                    x[i] = scaled_pair<T>(x[i], shared.factors + step * 16 + i / 2 * 8 + 2 * t);
            const uint32_t low[2] = {x[0], x[2]}, high[2] = {x[1], x[3]};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const uint32_t(&four)[4] = b[step][i / 2];
                const uint32_t half[2] = {four[i % 2 * 2], four[i % 2 * 2 + 1]};
                multiply_add<T>(sums[i / 2][i % 2], low, high, half);
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = begin + tile * 16 + g + i / 2 * 8;
            const int block = c0 / 16 + warp * 2 + i % 2, first = i / 2 * 2;
            if (row >= args.rows) continue;
            const float(&low)[4] = sums[i % 2][0], (&high)[4] = sums[i % 2][1];
            args.absorbed[((int64_t{row} * args.blocks() + block) * args.head_tiles() + h / 8) *
                              32 +
                          h % 8 * 4 + t] = {
                pack(T{}, low[first] * scale, low[first + 1] * scale),
                pack(T{}, high[first] * scale, high[first + 1] * scale)};
        }
    }
}

}  // namespace

void absorb_queries(Context& ctx, const AbsorbedArgs& args) {
    const dim3 grid(static_cast<unsigned>(args.c / kAbsorbColumns),
                    static_cast<unsigned>(args.heads),
                    static_cast<unsigned>(ceil_div(args.rows, kAbsorbRows)));
    with_small_m_types(args.type, args.kv_type, [&](auto x, auto w) {
        pdl_launch(ctx, absorb_kernel<decltype(x), decltype(w)>, grid, kAbsorbThreads, 0, args);
    });
}

}  // namespace hark::cuda
