// The last kernel of absorbed_attention: (P X)_h Wv_h^T + bv_h for each head, P X summed over the
// splits. It requests its weights before it waits for the previous kernel.
#include "kernels/absorbed_attention/absorbed_attention.cuh"
#include "kernels/attention/attention_kernels.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {
namespace {

constexpr int kExpandThreads = 32 * kAbsorbedWarps;
constexpr int kExpandUnit = 32;                                  // columns, two steps of a product
constexpr int kMostUnits = 1280 / kExpandUnit / kAbsorbedWarps;  // of a warp

// Weights of the splits of a row and head.
__device__ inline void load_weights(float (&weights)[kMostAbsorbedSplits], const AbsorbedArgs& args,
                                    int row, int h) {
    const float2* row_max_sum = args.row_max_sum + (int64_t{row} * args.heads + h) * args.splits;
    const bool there = row < args.rows;
    float maxima[kMostAbsorbedSplits], largest = -INFINITY, sum = 0;
#pragma unroll
    for (int s = 0; s < kMostAbsorbedSplits; ++s) {
        const float2 top = there && s < args.splits ? row_max_sum[s] : float2{-INFINITY, 0.0f};
        maxima[s] = top.x;
        weights[s] = top.y;
    }
#pragma unroll
    for (int s = 0; s < kMostAbsorbedSplits; ++s) largest = fmaxf(largest, maxima[s]);
#pragma unroll
    for (int s = 0; s < kMostAbsorbedSplits; ++s) {
        weights[s] = __fmul_rn(weights[s], exp2_from(maxima[s], largest));
        sum = __fadd_rn(sum, weights[s]);
    }
    const float inverse = sum == 0 ? 0.0f : __frcp_rn(sum);  // NaN stays NaN
#pragma unroll
    for (int s = 0; s < kMostAbsorbedSplits; ++s) weights[s] = __fmul_rn(weights[s], inverse);
}

// The 32 columns of a unit, summed over the splits: 4 pairs, of columns 8 j + 2 t of the unit.
template <class T>
__device__ void merge_unit(uint32_t (&pairs)[4], const float (&weights)[kMostAbsorbedSplits],
                           const uint2* parts, int64_t split_stride, int splits) {
    float sums[8] = {};
    uint2 loaded[kMostAbsorbedSplits][2];
#pragma unroll
    for (int s = 0; s < kMostAbsorbedSplits; ++s)
        for (int i = 0; i < 2; ++i)
            loaded[s][i] = s < splits ? parts[s * split_stride + i * 4] : uint2{0, 0};
#pragma unroll
    for (int s = 0; s < kMostAbsorbedSplits; ++s) {
        const T* values = reinterpret_cast<const T*>(loaded[s]);
        if (weights[s] == 0) loaded[s][0] = loaded[s][1] = {0, 0};  // this split was not written
#pragma unroll
        for (int i = 0; i < 8; ++i) sums[i] = __fmaf_rn(weights[s], to_f32(values[i]), sums[i]);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) pairs[j] = pack(T{}, sums[2 * j], sums[2 * j + 1]);
}

// Exchange within four neighbouring lanes: pair j of lane t becomes pair t of lane j. A lane then
// has 8 neighbouring columns, the same as it loads of the weights.
__device__ inline void exchange(uint32_t (&pairs)[4]) {
    const bool odd = threadIdx.x % 2, upper = threadIdx.x / 2 % 2;
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
        const uint32_t got = __shfl_xor_sync(0xffffffff, odd ? pairs[j] : pairs[j + 1], 1);
        pairs[j] = odd ? got : pairs[j];
        pairs[j + 1] = odd ? pairs[j + 1] : got;
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const uint32_t got = __shfl_xor_sync(0xffffffff, upper ? pairs[j] : pairs[j + 2], 2);
        pairs[j] = upper ? got : pairs[j];
        pairs[j + 2] = upper ? pairs[j + 2] : got;
    }
}

// 8 neighbouring values of a row of Wv.
template <class T, class W>
struct ValueWeights {
    std::conditional_t<sizeof(W) == 2, uint4, uint2> raw;

    __device__ void load(const W* from) { raw = *reinterpret_cast<const decltype(raw)*>(from); }
    __device__ Half half() const {
        if constexpr (sizeof(W) == 2) {
            return as_half(raw);
        } else {
            Half out;
            bytes_to_pairs(raw.x, out.step[0], W(), T());
            bytes_to_pairs(raw.y, out.step[1], W(), T());
            return out;
        }
    }
};

// Block (16 * MT of a head's 64 outputs, 8 * NT rows). A warp sums an eighth of the columns in
// units of 32; then the warps' sums are added in order.
template <class T, class W, int MT, int NT>
__global__ void __launch_bounds__(kExpandThreads, MT == 1 ? 1 : 3)
    expand_kernel(AbsorbedArgs args) {
    pdl_trigger();
    constexpr int kOutputs = 16 * MT, kBlocksOfHead = kAbsorbedHead / kOutputs, kRows = 8 * NT;
    constexpr int kPitch = kOutputs + 4;  // the stores of a warp hit all banks
    constexpr int kAhead = MT == 1 ? kMostUnits : 1;
    __shared__ float shared[kAbsorbedWarps][kRows][kPitch];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int h = blockIdx.x / kBlocksOfHead, first_row = blockIdx.y * kRows;
    const int first = h * kAbsorbedHead + blockIdx.x % kBlocksOfHead * kOutputs;
    const int units = args.c / kExpandUnit;
    const int begin = warp * units / kAbsorbedWarps, end = (warp + 1) * units / kAbsorbedWarps;
    const W* from = static_cast<const W*>(args.kv) + int64_t{args.c + first + g} * args.c + 8 * t;
    ValueWeights<T, W> weights[kAhead][2 * MT];  // rows g and g + 8 of each 16
    const auto load = [&](ValueWeights<T, W>(&to)[2 * MT], int unit) {
#pragma unroll
        for (int i = 0; i < 2 * MT; ++i)
            to[i].load(from + int64_t{8 * i} * args.c + unit * kExpandUnit);
    };
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(weights[i], min(begin + i, units - 1));
    pdl_wait();

    if constexpr (MT > 1) {  // prefetches all splits that the block adds
        const int lines = args.c / 64,
                  all = min(kRows, args.rows - first_row) * args.splits * lines;
        for (int i = threadIdx.x; i < all; i += kExpandThreads) {
            const int64_t part = int64_t{first_row} * args.splits + i / lines;
            prefetch(args.parts + (part * args.heads + h) * args.blocks() * 4 + i % lines * 16);
        }
    }
    float split_weights[NT][kMostAbsorbedSplits];
    const uint2* parts[NT];
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        const int row = first_row + n * 8 + g;
        load_weights(split_weights[n], args, row, h);
        parts[n] =
            args.parts + (int64_t{row} * args.splits * args.heads + h) * args.blocks() * 4 + t;
    }
    const int64_t split_stride = int64_t{args.heads} * args.blocks() * 4;
    float sums[MT][NT][4] = {};
    const auto multiply = [&](const ValueWeights<T, W>(&w)[2 * MT], int unit) {
        Half x[NT], halves[MT][2];
#pragma unroll
        for (int n = 0; n < NT; ++n) {
            uint32_t pairs[4];
            merge_unit<T>(pairs, split_weights[n], parts[n] + unit * 8, split_stride,
                          first_row + n * 8 + g < args.rows ? args.splits : 0);
            exchange(pairs);
            x[n] = {{{pairs[0], pairs[1]}, {pairs[2], pairs[3]}}};
        }
#pragma unroll
        for (int i = 0; i < 2 * MT; ++i) halves[i / 2][i % 2] = w[i].half();
        multiply_halves<T, MT, NT>(sums, halves, x);
    };
    if constexpr (MT == 1) {
#pragma unroll
        for (int i = 0; i < kMostUnits; ++i)
            if (begin + i < end) multiply(weights[i], begin + i);
    } else {
        for (int unit = begin; unit < end; ++unit) {
            if (unit > begin) load(weights[0], unit);
            multiply(weights[0], unit);
        }
    }
#pragma unroll
    for (int i = 0; i < MT * NT * 4; ++i)
        shared[warp][i / 4 % NT * 8 + 2 * t + i % 2][i / 4 / NT * 16 + i / 2 % 2 * 8 + g] =
            sums[i / 4 / NT][i / 4 % NT][i % 4];
    __syncthreads();
    for (int i = threadIdx.x; i < kRows * kOutputs; i += kExpandThreads) {
        const int row = first_row + i / kOutputs, n = first + i % kOutputs;
        if (row >= args.rows) break;
        float sum = 0;
        for (int w = 0; w < kAbsorbedWarps; ++w)
            sum = __fadd_rn(sum, shared[w][i / kOutputs][i % kOutputs]);
        if (sizeof(W) == 1) sum = __fmul_rn(sum, args.scales[args.c + n]);
        sum = __fadd_rn(sum, args.bias[args.c + n]);
        static_cast<T*>(args.out)[(int64_t{args.first_row} + row) * args.c + n] = from_f32<T>(sum);
    }
}

}  // namespace

// If blocks of 16 outputs are few, a head is spread over such blocks. Otherwise each block computes
// all 64 outputs, so the splits are read and added once.
void expand_values(Context& ctx, const AbsorbedArgs& args) {
    const bool few = ceil_div(args.rows, 8) * args.heads <= multiprocessors() / 2;
    with_small_m_types(args.type, args.kv_type, [&](auto x, auto w) {
        using X = decltype(x);
        using W = decltype(w);
        const auto heads = static_cast<unsigned>(args.heads);
        if (few) {
            pdl_launch(ctx, expand_kernel<X, W, 1, 1>,
                       dim3(heads * 4, static_cast<unsigned>(ceil_div(args.rows, 8))),
                       kExpandThreads, 0, args);
        } else {
            pdl_launch(ctx, expand_kernel<X, W, 4, 1>,
                       dim3(heads, static_cast<unsigned>(ceil_div(args.rows, 8))), kExpandThreads,
                       0, args);
        }
    });
}

}  // namespace hark::cuda
