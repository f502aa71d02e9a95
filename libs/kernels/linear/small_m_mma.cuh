// linear of 16-bit activations on the matrix units, with a row's bits independent of other rows.
// Seven kernels compute the same bits: short_row_kernel (small_m_short_row.cu) and row_kernel
// (small_m_row.cu) for one row, sliced_kernel (small_m_mma.cu) for few, tiled_kernel
// (small_m_mma_tiled.cu) for more, on Hopper box_kernel (small_m_boxes.cuh) and, of a vocabulary,
// vocabulary_kernel (small_m_boxes_vocabulary.cu) for 65 to 128 and batch_kernel
// (small_m_wgmma.cu), whose wgmma rounds the sum of a step as mma.m16n8k16 does.
//
// All multiply 16 outputs x 16 columns by 16 columns x 8 rows (mma.m16n8k16): weights are the first
// operand and rows of x the second, so the unit computes each row from that row alone. The type of
// the weights and K fix how a row is summed:
//   - units of 64 columns, each multiplied in 4 steps. Which 16 columns a step has is free, as both
//     operands use the same ones: a lane has 8 (of a byte each: 16) neighbours of a row, 16 bytes
//     of weights as stored in memory, so no shared memory or shuffle is needed to arrange them;
//   - slices of units, each summed from zero; then the slices are added in order.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/cuda/mma.cuh"
#include "kernels/elementwise/clamped_swiglu.cuh"
#include "kernels/quant/quantized.cuh"

namespace hark::cuda {

constexpr int kUnit = 64;        // columns
constexpr int kMostSlices = 16;  // warps per block of sliced_kernel

// A slice is 2 units, from this number of outputs 4, or K / 1024 units if K is large. Few outputs
// are few blocks, each of which must read much at a time; blocks of many outputs do more each.
constexpr int64_t kManyOutputs = 4096;
constexpr int64_t kVocabulary = 16384;  // and more outputs

// append_cache's arguments if row r is the only one of sequence r.
struct AppendArgs {
    void *keys = nullptr, *values = nullptr;
    Dtype type{};
    const int *slot = nullptr, *length = nullptr;
    int64_t first = 0, slots = 0, capacity = 0;
    int heads = 0, d = 0;

    explicit AppendArgs(const Append* append) {
        if (!append) return;
        keys = append->keys.data;
        values = append->values.data;
        type = append->keys.dtype;
        slot = append->rows.block_table.as<int32_t>();
        length = append->rows.length.as<int32_t>();
        first = append->first;
        slots = append->keys.dim(0);
        capacity = append->keys.dim(2);
        heads = static_cast<int>(append->keys.dim(1));
        d = static_cast<int>(append->keys.dim(3));
    }
};

struct SmallMArgs {
    void* y;
    Dtype y_type;
    const float* scales;  // of W's rows, or none
    const float* bias;
    const void* residual;
    Activation activation;
    int64_t rows, n, k;
    int units, slices;
    const float *norm_weight, *norm_bias;  // for x's rows, or none
    float norm_eps;
    // Of a gated product, whose n is y's columns: output n is gate(row n of W) * row `up` + n.
    int64_t up = 0;
    Activation gate = Activation::none;
    float swiglu_slope = 0, swiglu_limit = 0;  // a limit above 0: clamped_swiglu's, for the gate
    AppendArgs append;

    SmallMArgs(const Tensor& y, const Tensor& x, const Matrix& w, const Epilogue& then,
               const LinearFusion& with = {})
        : y(y.data),
          y_type(y.dtype),
          scales(w.scales ? w.scales.as<float>() : nullptr),
          bias(then.bias ? then.bias.as<float>() : nullptr),
          residual(then.residual.data),
          activation(then.activation),
          rows(x.rows()),
          n(w.values.dim(0)),
          k(w.values.dim(1)),
          units(static_cast<int>(ceil_div(k, kUnit))),
          slices(static_cast<int>(
              std::min<int64_t>(kMostSlices, ceil_div(units, n < kManyOutputs ? 2 : 4)))),
          norm_weight(with.norm.weight ? with.norm.weight.as<float>() : nullptr),
          norm_bias(with.norm.bias ? with.norm.bias.as<float>() : nullptr),
          norm_eps(with.norm.eps),
          append(with.append) {
        if (!with.gated) return;
        n /= 2;
        up = n;
        gate = std::exchange(activation, Activation::none);
    }

    // Slice s is the units [slice_begin(s), slice_begin(s + 1)).
    __host__ __device__ int slice_begin(int slice) const { return slice * units / slices; }
};

// Epilogue parameters of one output. Loaded before its products are summed.
struct EpilogueParams {
    float scale, bias;
};

__device__ inline EpilogueParams epilogue_params(const SmallMArgs& args, int64_t n) {
    const bool there = n < args.n + args.up;
    return {there && args.scales ? args.scales[n] : 1.0f, there && args.bias ? args.bias[n] : 0.0f};
}

// y's value for a sum of products. Each operation rounds by itself: the compiler must not fuse them
// in one kernel and not in another.
__device__ inline float apply_epilogue(const SmallMArgs& args, const EpilogueParams& column,
                                       float sum, float residual) {
    sum = __fadd_rn(__fmul_rn(sum, column.scale), column.bias);
    return __fadd_rn(activate(sum, args.activation), residual);
}

__device__ inline float residual_at(const SmallMArgs& args, int64_t at) {
    return args.residual ? load_any(args.residual, args.y_type, at) : 0.0f;
}

// y's value of a gated product: of two values of the plain one, rounded to y's type.
__device__ inline float gated_value(const SmallMArgs& args, float gate, float up) {
    const auto rounded = [&](float x) {
        if (args.y_type == Dtype::f16) return to_f32(from_f32<__half>(x));
        if (args.y_type == Dtype::bf16) return to_f32(from_f32<__nv_bfloat16>(x));
        return x;
    };
    gate = rounded(gate);
    up = rounded(up);
    if (args.swiglu_limit > 0)
        return clamped_swiglu(gate, up, args.swiglu_slope, args.swiglu_limit);
    return activate(gate, args.gate) * up;
}

// Finishes the sum of one of 16 rows of w, a lane each, and writes it if `stores`. Of a gated
// product the lanes of rows 8 to 15 have the second factors of those 8 lanes before. By a whole
// warp.
__device__ inline void store_row(const SmallMArgs& args, const EpilogueParams& params, float sum,
                                 float residual, int output, bool stores) {
    float value = apply_epilogue(args, params, sum, residual);
    const float up = __shfl_down_sync(0xffffffff, value, 8);
    if (args.up > 0) value = gated_value(args, value, up);
    if (stores) store_any(args.y, args.y_type, output, value);
}

// Tiles of rows in their order. Another kind of tiles has the same members.
struct RowTiles {
    static constexpr bool kChosen = false;  // by a previous kernel

    struct Tile {
        int first, rows;
        static constexpr int64_t weights =
            0;  // where they begin, in bytes; below 0: there are none

        // Row i is this row of x, and of y.
        __device__ int from(int i) const { return first + i; }
        __device__ int to(int i) const { return first + i; }
        __device__ EpilogueParams params(const SmallMArgs& args, int n) const {
            return epilogue_params(args, n);
        }
        __device__ EpilogueParams up_params(const SmallMArgs& args, int n) const {
            return epilogue_params(args, args.up + n);
        }
    };
    __device__ Tile tile(const SmallMArgs& args, int i, int most) const {
        return {i * most, min(most, static_cast<int>(args.rows) - i * most)};
    }
    __host__ __device__ bool gated(const SmallMArgs& args) const { return args.up > 0; }
    // From the first factors' rows of w to the second ones', in bytes.
    __device__ int64_t up(const SmallMArgs& args, int64_t stride) const { return args.up * stride; }
};

// The rows of a tile without weights.
template <class Tile>
__device__ void write_nan(const SmallMArgs& args, const Tile& tile) {
    const int64_t threads = int64_t{gridDim.y} * blockDim.x;
    for (int row = 0; row < tile.rows; ++row)
        for (int64_t n = int64_t{blockIdx.y} * blockDim.x + threadIdx.x; n < args.n; n += threads)
            store_any(args.y, args.y_type, tile.to(row) * args.n + n, NAN);
}

// Half of a lane's values in one row of one unit: 8 values, for two steps.
struct Half {
    uint32_t step[2][2];  // two neighbours each
};

// The place of the 8 values of lane 4 g + t, in units of 8 columns. A lane's 16 bytes of int8
// or fp8 are both halves.
template <class W>
__device__ constexpr int chunk_of(int t, int half) {
    return sizeof(W) == 1 ? 2 * t + half : 4 * half + t;
}

__device__ inline Half as_half(uint4 v) { return {{{v.x, v.y}, {v.z, v.w}}}; }

// Four int8 as two pairs of bf16, which has 8 bits: v's low 7 bits below 0x43 are 128 + those bits;
// minus 128, or 256 if the sign bit is set.
__device__ inline void int8_to_pairs(uint32_t bytes, uint32_t (&pairs)[2], __nv_bfloat16) {
    for (int i = 0; i < 2; ++i) {
        const int order = i == 0 ? 0x4140 : 0x4342;
        const uint32_t low = __byte_perm(bytes & 0x7f7f7f7f, 0x43434343, order);
        const uint32_t sign = __byte_perm(bytes & 0x80808080, 0x43434343, order);
        const __nv_bfloat162 pair = __hsub2(reinterpret_cast<const __nv_bfloat162&>(low),
                                            reinterpret_cast<const __nv_bfloat162&>(sign));
        pairs[i] = reinterpret_cast<const uint32_t&>(pair);
    }
}

// Four weights of a byte each as two pairs of X.
template <class X>
__device__ inline void bytes_to_pairs(uint32_t bytes, uint32_t (&pairs)[2], int8_t, X) {
    int8_to_pairs(bytes, pairs, X());
}
template <class X>
__device__ inline void bytes_to_pairs(uint32_t bytes, uint32_t (&pairs)[2], fp8_t, X) {
    fp8_to_pairs(bytes, pairs, X());
}

// 8 values as X from 16 bytes of weights; of int8 and fp8 the half `half`.
template <class X, class W>
__device__ inline Half weights_half(uint4 v, int half) {
    if constexpr (sizeof(W) == 2) {
        return as_half(v);
    } else {
        Half out;
        bytes_to_pairs(half == 0 ? v.x : v.z, out.step[0], W(), X());
        bytes_to_pairs(half == 0 ? v.y : v.w, out.step[1], W(), X());
        return out;
    }
}

// sum (16 x 8) += a's 16 rows x b's 8. Lane 4 g + t has rows g and g + 8 of a, row g of b, and (g,
// 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) of the sum.
template <class X>
__device__ inline void multiply_add(float (&sum)[4], const uint32_t (&low)[2],
                                    const uint32_t (&high)[2], const uint32_t (&b)[2]) {
    mma(X{}, sum, low[0], high[0], low[1], high[1], b[0], b[1]);
}

// Multiplies the halves of MT tiles of 16 outputs and NT tiles of 8 rows. Products for the same sum
// are as far apart as possible, so none waits for the previous one.
template <class X, int MT, int NT>
__device__ inline void multiply_halves(float (&sums)[MT][NT][4], const Half (&w)[MT][2],
                                       const Half (&x)[NT]) {
#pragma unroll
    for (int step = 0; step < 2; ++step)
#pragma unroll
        for (int j = 0; j < NT; ++j)
#pragma unroll
            for (int i = 0; i < MT; ++i)
                multiply_add<X>(sums[i][j], w[i][0].step[step], w[i][1].step[step],
                                x[j].step[step]);
}

// Calls f with values of the CUDA types of x and w; false if the kernels do not take them.
template <class F>
bool with_small_m_types(Dtype x, Dtype w, F&& f) {
    if (!is_16_bit(x) || (w != x && !has_row_scales(w))) return false;
    const auto with_x = [&](auto x_value) {
        if (w == Dtype::i8) return f(x_value, int8_t{});
        if (w == Dtype::fp8) return f(x_value, fp8_t{});
        f(x_value, x_value);
    };
    if (x == Dtype::f16) {
        with_x(__half{});
    } else {
        with_x(__nv_bfloat16{});
    }
    return true;
}

// Whether small_m_product takes the operands: x in 16 bits, weights of x's type, int8 or fp8, all
// rows aligned to 16 bytes.
bool has_small_m_product(const Tensor& x, const Matrix& w);

// y = epilogue(x W^T), with the fastest kernel and tile for the number of rows.
void small_m_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                     const LinearFusion& with);

// Whether small_m_product fuses the norm: x has one row, which every block normalises.
bool norms_row(const Tensor& x, const Matrix& w, const Norm& norm);

// Whether small_m_product, or small_m_quantized, fuses gated_activation.
bool gates_rows(const Tensor& x, const Matrix& w);

// Whether small_m_product appends y's rows, each the only one of its sequence.
bool appends_rows(const Tensor& x, const Matrix& w, const Append& append);

// The same by wgmma on Hopper; returns false and does nothing on another GPU. of_bytes: of int8 or
// fp8 weights.
bool small_m_wgmma_product(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w);
bool small_m_wgmma_of_bytes(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w);

// The same by tiled_kernel, in tiles of this many outputs and rows.
enum class Tile { k32x32, k64x64, k128x64 };
void tiled_product(Context& ctx, const SmallMArgs& args, Tensor x, Tensor w, Tile tile);

}  // namespace hark::cuda
