// absorbed_attention on the GPU: the checks, the first kernel and the last. Both kernels multiply
// by weights, which they request before they wait for the previous kernel.
#include <cuda_pipeline.h>

#include <cmath>

#include "kernels/absorbed_attention/absorbed_attention.cuh"
#include "kernels/attention/attention_kernels.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {
namespace {

// --- q_h Wk_h

constexpr int kFoldColumns = 128, kFoldThreads = 128, kFoldRows = 64;  // per block
constexpr int kFoldSteps = kFoldedHead / 16;
constexpr int kFoldAtOnce = 32;  // rows

template <class T>
struct KeyWeights {
    T values[kFoldedHead][kFoldColumns + 8];  // the pad lets 8 rows of a fragment hit all banks
    float factors[kFoldedHead];               // one per channel of q
};

// Wk_h's columns from c0, as T.
template <class T, class W>
__device__ void load_key_weights(KeyWeights<T>& shared, const W* from, int c) {
    constexpr int kValues = 16 / sizeof(W), kChunks = kFoldColumns / kValues;
    for (int i = threadIdx.x; i < kFoldedHead * kChunks; i += kFoldThreads) {
        const int row = i / kChunks, column = i % kChunks * kValues;
        if constexpr (sizeof(W) == 2) {
            __pipeline_memcpy_async(&shared.values[row][column], from + int64_t{row} * c + column,
                                    16);
        } else {
            const uint4 v = *reinterpret_cast<const uint4*>(from + int64_t{row} * c + column);
            const uint32_t words[4] = {v.x, v.y, v.z, v.w};
            uint32_t pairs[4][2];
#pragma unroll
            for (int j = 0; j < 4; ++j) int8_to_pairs(words[j], pairs[j], T());
            uint4* to = reinterpret_cast<uint4*>(&shared.values[row][column]);
            to[0] = {pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1]};
            to[1] = {pairs[2][0], pairs[2][1], pairs[3][0], pairs[3][1]};
        }
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

// int8: the scales of Wk_h's rows belong to q's channels. They are divided by the largest one here,
// so small scales lose no digits. Returns the largest, which scales the result.
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

// 16 rows of 16 channels of q: the left operand of a product. Missing rows are zeros.
template <class T>
__device__ uint32_t query_pair(const T* q, int64_t at, bool there, const float* factors) {
    if (!there) return 0;
    const uint32_t pair = *reinterpret_cast<const uint32_t*>(q + at);
    if (factors == nullptr) return pair;
    const T* values = reinterpret_cast<const T*>(&pair);
    return pack(T{}, to_f32(values[0]) * factors[0], to_f32(values[1]) * factors[1]);
}

// Block (128 columns, head, 64 rows). A warp computes 32 of the columns.
template <class T, class W>
__global__ void __launch_bounds__(kFoldThreads) fold_kernel(FoldedArgs args) {
    let_next_start();
    __shared__ __align__(16) KeyWeights<T> shared;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int h = blockIdx.y, c0 = blockIdx.x * kFoldColumns;
    const W* weights = static_cast<const W*>(args.kv) + int64_t{h} * kFoldedHead * args.c + c0;
    float scale = args.scale_log2;
    load_key_weights(shared, weights, args.c);
    if constexpr (sizeof(W) == 1) scale *= load_factors(shared, args.scales + h * kFoldedHead);
    __syncthreads();
    uint32_t b[kFoldSteps][2][4];  // [step][block of 16 columns]: two halves of each 2 registers
#pragma unroll
    for (int step = 0; step < kFoldSteps; ++step)
#pragma unroll
        for (int i = 0; i < 2; ++i)
            load_matrices<true>(b[step][i], &shared.values[step * 16 + lane / 8 % 2 * 8 + lane % 8]
                                                          [(warp * 2 + i) * 16 + lane / 16 * 8]);
    wait_for_previous();
    const T* q = static_cast<const T*>(args.q) + int64_t{args.first_row} * args.c + h * kFoldedHead;
    const int end = min(args.rows, static_cast<int>(blockIdx.z + 1) * kFoldRows);
#pragma unroll 1
    for (int begin = blockIdx.z * kFoldRows; begin < end; begin += kFoldAtOnce) {
        const int first_row = begin + g;
        uint32_t a[kFoldAtOnce / 16][kFoldSteps][2][2];  // rows g and g + 8; channels 2t and 2t + 8
#pragma unroll
        for (int tile = 0; tile < kFoldAtOnce / 16; ++tile)
#pragma unroll
            for (int i = 0; i < 4 * kFoldSteps; ++i) {
                const int channel = i / 4 * 16 + i % 2 * 8 + 2 * t;
                const int row = first_row + tile * 16 + i / 2 % 2 * 8;
                a[tile][i / 4][i / 2 % 2][i % 2] =
                    query_pair(q, int64_t{row} * args.c + channel, row < args.rows,
                               sizeof(W) == 1 ? shared.factors + channel : nullptr);
            }
#pragma unroll
        for (int tile = 0; tile < kFoldAtOnce / 16; ++tile) {
            if (begin + tile * 16 >= args.rows) return;
            float sums[2][2][4] = {};
#pragma unroll
            for (int step = 0; step < kFoldSteps; ++step)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const uint32_t(&four)[4] = b[step][i / 2];
                    const uint32_t half[2] = {four[i % 2 * 2], four[i % 2 * 2 + 1]};
                    multiply_add<T>(sums[i / 2][i % 2], a[tile][step][0], a[tile][step][1], half);
                }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = first_row + tile * 16 + i / 2 * 8;
                const int block = c0 / 16 + warp * 2 + i % 2, first = i / 2 * 2;
                if (row >= args.rows) continue;
                const float(&low)[4] = sums[i % 2][0], (&high)[4] = sums[i % 2][1];
                args.folded[((int64_t{row} * args.blocks() + block) * args.head_tiles() + h / 8) *
                                32 +
                            h % 8 * 4 + t] = {
                    pack(T{}, low[first] * scale, low[first + 1] * scale),
                    pack(T{}, high[first] * scale, high[first + 1] * scale)};
            }
        }
    }
}

// --- (P X)_h Wv_h^T + bv_h

constexpr int kUnfoldThreads = 32 * kFoldedWarps;
constexpr int kUnfoldUnit = 32;                                // columns, two steps of a product
constexpr int kMostUnits = 1280 / kUnfoldUnit / kFoldedWarps;  // of a warp

// Weights of the splits of a row and head.
__device__ inline void load_weights(float (&weights)[kMostFoldedSplits], const FoldedArgs& args,
                                    int row, int h) {
    const float2* row_max_sum = args.row_max_sum + (int64_t{row} * args.heads + h) * args.splits;
    const bool there = row < args.rows;
    float maxima[kMostFoldedSplits], largest = -INFINITY, sum = 0;
#pragma unroll
    for (int s = 0; s < kMostFoldedSplits; ++s) {
        const float2 top = there && s < args.splits ? row_max_sum[s] : float2{-INFINITY, 0.0f};
        maxima[s] = top.x;
        weights[s] = top.y;
    }
#pragma unroll
    for (int s = 0; s < kMostFoldedSplits; ++s) largest = fmaxf(largest, maxima[s]);
#pragma unroll
    for (int s = 0; s < kMostFoldedSplits; ++s) {
        weights[s] = __fmul_rn(weights[s], exp2_from(maxima[s], largest));
        sum = __fadd_rn(sum, weights[s]);
    }
    const float inverse = sum == 0 ? 0.0f : __frcp_rn(sum);  // NaN stays NaN
#pragma unroll
    for (int s = 0; s < kMostFoldedSplits; ++s) weights[s] = __fmul_rn(weights[s], inverse);
}

// The 32 columns of a unit, summed over the splits: 4 pairs, of columns 8 j + 2 t of the unit.
template <class T>
__device__ void merge_unit(uint32_t (&pairs)[4], const float (&weights)[kMostFoldedSplits],
                           const uint2* parts, int64_t split_stride, int splits) {
    float sums[8] = {};
    uint2 loaded[kMostFoldedSplits][2];
#pragma unroll
    for (int s = 0; s < kMostFoldedSplits; ++s)
        for (int i = 0; i < 2; ++i)
            loaded[s][i] = s < splits ? parts[s * split_stride + i * 4] : uint2{0, 0};
#pragma unroll
    for (int s = 0; s < kMostFoldedSplits; ++s) {
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
            int8_to_pairs(raw.x, out.step[0], T());
            int8_to_pairs(raw.y, out.step[1], T());
            return out;
        }
    }
};

// Block (16 * MT of a head's 64 outputs, 8 * NT rows). A warp sums an eighth of the columns in
// units of 32; then the warps' sums are added in order.
template <class T, class W, int MT, int NT>
__global__ void __launch_bounds__(kUnfoldThreads, MT == 1 ? 1 : 3) unfold_kernel(FoldedArgs args) {
    let_next_start();
    constexpr int kOutputs = 16 * MT, kBlocksOfHead = kFoldedHead / kOutputs, kRows = 8 * NT;
    constexpr int kPitch = kOutputs + 4;  // the stores of a warp hit all banks
    constexpr int kAhead = MT == 1 ? kMostUnits : 1;
    __shared__ float shared[kFoldedWarps][kRows][kPitch];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int h = blockIdx.x / kBlocksOfHead, first_row = blockIdx.y * kRows;
    const int first = h * kFoldedHead + blockIdx.x % kBlocksOfHead * kOutputs;
    const int units = args.c / kUnfoldUnit;
    const int begin = warp * units / kFoldedWarps, end = (warp + 1) * units / kFoldedWarps;
    const W* from = static_cast<const W*>(args.kv) + int64_t{args.c + first + g} * args.c + 8 * t;
    ValueWeights<T, W> weights[kAhead][2 * MT];  // rows g and g + 8 of each 16
    const auto load = [&](ValueWeights<T, W>(&to)[2 * MT], int unit) {
#pragma unroll
        for (int i = 0; i < 2 * MT; ++i)
            to[i].load(from + int64_t{8 * i} * args.c + unit * kUnfoldUnit);
    };
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(weights[i], min(begin + i, units - 1));
    wait_for_previous();

    if constexpr (MT > 1) {  // prefetches all splits that the block adds
        const int lines = args.c / 64,
                  all = min(kRows, args.rows - first_row) * args.splits * lines;
        for (int i = threadIdx.x; i < all; i += kUnfoldThreads) {
            const int64_t part = int64_t{first_row} * args.splits + i / lines;
            prefetch(args.parts + (part * args.heads + h) * args.blocks() * 4 + i % lines * 16);
        }
    }
    float split_weights[NT][kMostFoldedSplits];
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
    for (int i = threadIdx.x; i < kRows * kOutputs; i += kUnfoldThreads) {
        const int row = first_row + i / kOutputs, n = first + i % kOutputs;
        if (row >= args.rows) break;
        float sum = 0;
        for (int w = 0; w < kFoldedWarps; ++w)
            sum = __fadd_rn(sum, shared[w][i / kOutputs][i % kOutputs]);
        if (sizeof(W) == 1) sum = __fmul_rn(sum, args.scales[args.c + n]);
        sum = __fadd_rn(sum, args.bias[args.c + n]);
        static_cast<T*>(args.out)[(int64_t{args.first_row} + row) * args.c + n] = from_f32<T>(sum);
    }
}

// Chooses between kFoldedSplit and twice as many keys per split, for a typical number of rows. Long
// splits write, read and add half as many results. Short splits fill the multiprocessors better at
// some numbers of rows.
int split_keys() {
    constexpr int64_t kUsualRows = 128;
    const auto keys_of_a_block = [&](int split) {
        const int64_t splits = kMostFoldedSplits * kFoldedSplit / split;
        return ceil_div(kUsualRows * splits, multiprocessors()) * split;
    };
    constexpr int kLong = 2 * kFoldedSplit;
    return keys_of_a_block(kLong) <= keys_of_a_block(kFoldedSplit) ? kLong : kFoldedSplit;
}

// Limits of the GPU's kernels.
void check(const Tensor& out, const Tensor& q, const Tensor& encoder_out, const Matrix& kv,
           int64_t heads) {
    constexpr const char* kOp = "absorbed_attention";
    require(can_absorb(q.dtype, kv.values.dtype, encoder_out.dim(2), heads, encoder_out.dim(1)),
            kOp, ": expected q, encoder output and weights that can_absorb() takes, found ", q,
            ", ", encoder_out, ", ", kv.values, " and ", heads, " heads");
    for (const Tensor* tensor : {&out, &q, &encoder_out, &kv.values})
        require(reinterpret_cast<uintptr_t>(tensor->data) % 16 == 0, kOp,
                ": expected tensors aligned to 16 bytes, found ", *tensor, " that is not");
}

}  // namespace

void fold_queries(Context& ctx, const FoldedArgs& args) {
    const dim3 grid(static_cast<unsigned>(args.c / kFoldColumns), static_cast<unsigned>(args.heads),
                    static_cast<unsigned>(ceil_div(args.rows, kFoldRows)));
    with_small_m_types(args.type, args.kv_type, [&](auto x, auto w) {
        launch_early(ctx, fold_kernel<decltype(x), decltype(w)>, grid, kFoldThreads, 0, args);
    });
}

// If blocks of 16 outputs are few, a head is spread over such blocks. Otherwise each block computes
// all 64 outputs, so the splits are read and added once.
void unfold_values(Context& ctx, const FoldedArgs& args) {
    const bool few = ceil_div(args.rows, 8) * args.heads <= multiprocessors() / 2;
    with_small_m_types(args.type, args.kv_type, [&](auto x, auto w) {
        using X = decltype(x);
        using W = decltype(w);
        const auto heads = static_cast<unsigned>(args.heads);
        if (few) {
            launch_early(ctx, unfold_kernel<X, W, 1, 1>,
                         dim3(heads * 4, static_cast<unsigned>(ceil_div(args.rows, 8))),
                         kUnfoldThreads, 0, args);
        } else {
            launch_early(ctx, unfold_kernel<X, W, 4, 1>,
                         dim3(heads, static_cast<unsigned>(ceil_div(args.rows, 8))), kUnfoldThreads,
                         0, args);
        }
    });
}

void absorbed_attention(Context& ctx, Tensor out, Tensor q, Tensor encoder_out, const Matrix& kv,
                        Tensor kv_bias, int64_t heads, const BatchLayout& rows, float scale) {
    check(out, q, encoder_out, kv, heads);
    enter(ctx, {&out, &q, &encoder_out, &kv.values, &kv.scales, &kv_bias, &rows.query_start,
                &rows.slot, &rows.length});
    const int64_t all = q.dim(0), c = encoder_out.dim(2);
    if (all == 0 || rows.sequences() == 0) return;
    FoldedArgs args{};
    args.out = out.data;
    args.q = q.data;
    args.encoder_out = encoder_out.data;
    args.kv = kv.values.data;
    args.scales = kv.scales ? kv.scales.as<float>() : nullptr;
    args.bias = kv_bias.as<float>();
    args.query_start = rows.query_start.as<int32_t>();
    args.slot = rows.slot.as<int32_t>();
    args.length = rows.length.as<int32_t>();
    args.type = q.dtype;
    args.kv_type = kv.values.dtype;
    args.sequences = static_cast<int>(rows.sequences());
    args.slots = static_cast<int>(encoder_out.dim(0));
    args.frames = static_cast<int>(encoder_out.dim(1));
    args.c = static_cast<int>(c);
    args.heads = static_cast<int>(heads);
    args.one_each = rows.max_queries == 1 && rows.sequences() == all;
    args.kv_ready = rows.kv_ready;
    args.split_keys = split_keys();
    args.splits =
        static_cast<int>(std::max<int64_t>(1, ceil_div(rows.max_length, args.split_keys)));
    args.scale_log2 = scale * static_cast<float>(M_LOG2E);

    const Arena::Scope scope(ctx.arena);
    const int64_t most = std::min(all, kMostFoldedRows);
    const auto scratch = [&](int64_t bytes) {
        return ctx.arena.tensor(Dtype::u8, {most, bytes}).data;
    };
    args.folded = static_cast<uint2*>(scratch(c / 16 * args.head_tiles() * 256));
    args.parts = static_cast<uint2*>(scratch(args.splits * heads * c * 2));
    args.row_max_sum = static_cast<float2*>(scratch(args.splits * heads * 8));
    for (int64_t first = 0; first < all; first += most) {
        args.first_row = static_cast<int>(first);
        args.rows = static_cast<int>(std::min(most, all - first));
        fold_queries(ctx, args);
        attend_folded(ctx, args);
        unfold_values(ctx, args);
    }
}

}  // namespace hark::cuda
