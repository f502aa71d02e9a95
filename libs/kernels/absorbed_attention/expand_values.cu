// The last kernel of absorbed_attention: (P X)_h Wv_h^T + bv_h for each head, P X summed over the
// splits. It requests its weights before it waits for the previous kernel.
#include <algorithm>

#include <cuda_pipeline.h>

#include "kernels/absorbed_attention/absorbed_attention.cuh"
#include "kernels/attention/attention_kernels.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/shared_memory.cuh"
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

// A lane's columns 8 j + 2 t of a unit in every split of a row.
struct SplitUnit {
    uint2 values[kMostAbsorbedSplits][2];

    __device__ void load(const uint2* parts, int64_t split_stride, int splits) {
#pragma unroll
        for (int s = 0; s < kMostAbsorbedSplits; ++s)
            for (int i = 0; i < 2; ++i)
                values[s][i] = s < splits ? parts[s * split_stride + i * 4] : uint2{0, 0};
    }
    // The splits' sum: the lane's 8 neighbouring columns.
    template <class T>
    __device__ Half merged(const float (&weights)[kMostAbsorbedSplits], int splits) const {
        float sums[8] = {};
        uint32_t pairs[4];
#pragma unroll
        for (int s = 0; s < kMostAbsorbedSplits; ++s) {
            if (s >= splits) break;
            uint2 written[2];  // a split of weight 0 was not written
#pragma unroll
            for (int i = 0; i < 2; ++i) written[i] = weights[s] == 0 ? uint2{0, 0} : values[s][i];
            const T* in = reinterpret_cast<const T*>(written);
#pragma unroll
            for (int i = 0; i < 8; ++i) sums[i] = __fmaf_rn(weights[s], to_f32(in[i]), sums[i]);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) pairs[j] = pack(T{}, sums[2 * j], sums[2 * j + 1]);
        exchange(pairs);
        return {{{pairs[0], pairs[1]}, {pairs[2], pairs[3]}}};
    }
};

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

// Adds the warps' sums in order and writes the rows' outputs from `first` on.
template <class T, class W, int Rows, int Outputs>
__device__ void finish_rows(const AbsorbedArgs& args, const float (*sums)[Rows][Outputs + 4],
                            int first_row, int first) {
    for (int i = threadIdx.x; i < Rows * Outputs; i += kExpandThreads) {
        const int row = first_row + i / Outputs, n = first + i % Outputs;
        if (row >= args.rows) break;
        float sum = 0;
        for (int w = 0; w < kAbsorbedWarps; ++w)
            sum = __fadd_rn(sum, sums[w][i / Outputs][i % Outputs]);
        if (sizeof(W) == 1) sum = __fmul_rn(sum, args.scales[args.c + n]);
        sum = __fadd_rn(sum, args.bias[args.c + n]);
        static_cast<T*>(args.out)[(int64_t{args.first_row} + row) * args.c + n] = from_f32<T>(sum);
    }
}

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
            SplitUnit loaded;
            loaded.load(parts[n] + unit * 8, split_stride,
                        first_row + n * 8 + g < args.rows ? args.splits : 0);
            x[n] = loaded.template merged<T>(split_weights[n], args.splits);
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
    finish_rows<T, W, kRows, kOutputs>(args, shared, first_row, first);
}

// A lane's weights, copied to shared memory before the wait. A lane reads only what it has copied,
// so the warps need no barrier; a unit is a group of copies.
template <class T, class W>
struct StagedWeights {
    using Weights = ValueWeights<T, W>;
    using Raw = decltype(Weights::raw);
    static constexpr int kLoads = kAbsorbedHead / 8;  // per unit: rows g + 8 i of the head
    static constexpr int kUnitBytes = kLoads * kExpandThreads * int{sizeof(Raw)};

    Raw* mine;

    __device__ explicit StagedWeights(void* memory)
        : mine(static_cast<Raw*>(memory) + threadIdx.x) {}
    __device__ void start(int unit, const W* from, int64_t stride, bool there) {
#pragma unroll
        for (int i = 0; i < kLoads; ++i)
            if (there)
                __pipeline_memcpy_async(mine + (unit * kLoads + i) * kExpandThreads,
                                        from + 8 * i * stride, sizeof(Raw));
        __pipeline_commit();
    }
    __device__ void load(Weights (&to)[kLoads], int unit) const {
#pragma unroll
        for (int i = 0; i < kLoads; ++i) to[i].raw = mine[(unit * kLoads + i) * kExpandThreads];
    }
};

// The same for more rows: block (a head, 8 * NT rows). Weights are read once for all of them, and
// go through shared memory, which a block of a multiprocessor has alone. The sums are the same.
template <class T, class W, int NT>
__global__ void __launch_bounds__(kExpandThreads, 1) expand_rows_kernel(AbsorbedArgs args) {
    pdl_trigger();
    constexpr int kRows = 8 * NT, kPitch = kAbsorbedHead + 4, MT = kAbsorbedHead / 16;
    extern __shared__ __align__(16) unsigned char memory[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int h = blockIdx.x, first_row = blockIdx.y * kRows, first = h * kAbsorbedHead;
    const int units = args.c / kExpandUnit;
    const int begin = warp * units / kAbsorbedWarps, end = (warp + 1) * units / kAbsorbedWarps;
    const W* from = static_cast<const W*>(args.kv) + int64_t{args.c + first + g} * args.c + 8 * t;
    StagedWeights<T, W> staged(memory);
#pragma unroll
    for (int i = 0; i < kMostUnits; ++i)
        staged.start(i, from + (begin + i) * kExpandUnit, args.c, begin + i < end);
    pdl_wait();

    const int64_t split_stride = int64_t{args.heads} * args.blocks() * 4;
    const uint2* parts[NT];
    int splits[NT];  // none of rows that are not there
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        const int row = first_row + n * 8 + g;
        splits[n] = row < args.rows ? args.splits : 0;
        parts[n] =
            args.parts + (int64_t{row} * args.splits * args.heads + h) * args.blocks() * 4 + t;
    }
    SplitUnit units_of[NT];
#pragma unroll
    for (int n = 0; n < NT; ++n)
        units_of[n].load(parts[n] + begin * 8, split_stride, begin < end ? splits[n] : 0);
    float split_weights[NT][kMostAbsorbedSplits];
#pragma unroll
    for (int n = 0; n < NT; ++n) load_weights(split_weights[n], args, first_row + n * 8 + g, h);
    float sums[MT][NT][4] = {};
#pragma unroll
    for (int i = 0; i < kMostUnits; ++i) {
        if (begin + i >= end) break;
        Half x[NT], halves[MT][2];
        SplitUnit now[NT];
#pragma unroll
        for (int n = 0; n < NT; ++n) {
            now[n] = units_of[n];
            units_of[n].load(parts[n] + (begin + i + 1) * 8, split_stride,
                             begin + i + 1 < end ? splits[n] : 0);
        }
#pragma unroll
        for (int n = 0; n < NT; ++n)
            x[n] = now[n].template merged<T>(split_weights[n], args.splits);
        __pipeline_wait_prior(kMostUnits - 1 - i);
        ValueWeights<T, W> weights[2 * MT];
        staged.load(weights, i);
#pragma unroll
        for (int j = 0; j < 2 * MT; ++j) halves[j / 2][j % 2] = weights[j].half();
        multiply_halves<T, MT, NT>(sums, halves, x);
    }
    __pipeline_wait_prior(0);
    __syncthreads();  // all have read their weights
    float(*const shared)[kRows][kPitch] = reinterpret_cast<float(*)[kRows][kPitch]>(memory);
#pragma unroll
    for (int i = 0; i < MT * NT * 4; ++i)
        shared[warp][i / 4 % NT * 8 + 2 * t + i % 2][i / 4 / NT * 16 + i / 2 % 2 * 8 + g] =
            sums[i / 4 / NT][i / 4 % NT][i % 4];
    __syncthreads();
    finish_rows<T, W, kRows, kAbsorbedHead>(args, shared, first_row, first);
}

template <class T, class W, int NT>
void launch_rows(Context& ctx, const AbsorbedArgs& args, int bytes) {
    const auto kernel = expand_rows_kernel<T, W, NT>;
    allow_shared(reinterpret_cast<const void*>(kernel), bytes);
    pdl_launch(
        ctx, kernel,
        dim3(static_cast<unsigned>(args.heads), static_cast<unsigned>(ceil_div(args.rows, 8 * NT))),
        kExpandThreads, static_cast<size_t>(bytes), args);
}

}  // namespace

// If blocks of 16 outputs are few, a head is spread over such blocks. Otherwise each block computes
// all 64 outputs, so the splits are read and added once, of as few rows as fill the
// multiprocessors.
void expand_values(Context& ctx, const AbsorbedArgs& args) {
    const auto blocks = [&](int rows) { return ceil_div(args.rows, rows) * args.heads; };
    const bool few = blocks(8) <= multiprocessors() / 2;
    const int units = static_cast<int>(ceil_div(args.c / kExpandUnit, kAbsorbedWarps));
    with_small_m_types(args.type, args.kv_type, [&](auto x, auto w) {
        using X = decltype(x);
        using W = decltype(w);
        const int weights = units * StagedWeights<X, W>::kUnitBytes;
        const int sums = kAbsorbedWarps * 24 * (kAbsorbedHead + 4) * int{sizeof(float)};
        const int bytes = std::max(weights, sums);
        const auto heads = static_cast<unsigned>(args.heads);
        if (few)
            return pdl_launch(ctx, expand_kernel<X, W, 1, 1>,
                              dim3(heads * 4, static_cast<unsigned>(ceil_div(args.rows, 8))),
                              kExpandThreads, 0, args);
        if (bytes > shared_limit())
            return pdl_launch(ctx, expand_kernel<X, W, 4, 1>,
                              dim3(heads, static_cast<unsigned>(ceil_div(args.rows, 8))),
                              kExpandThreads, 0, args);
        if (blocks(8) <= multiprocessors()) return launch_rows<X, W, 1>(ctx, args, bytes);
        if (blocks(16) <= multiprocessors()) return launch_rows<X, W, 2>(ctx, args, bytes);
        launch_rows<X, W, 3>(ctx, args, bytes);
    });
}

}  // namespace hark::cuda
