#include "kernels/linear/small_m_mma.cuh"

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/linear/small_m_row.cuh"
#include "kernels/linear/small_m_short_row.cuh"
#include "kernels/norm/layer_norm.cuh"

namespace hark::cuda {
namespace {

// Operands of a lane's step: 8 columns of every row, or 16 if the weights are of a byte.
template <class W, int MT, int NT>
struct LaneStep {
    static constexpr int kHalves = sizeof(W) == 1 ? 2 : 1;
    static constexpr int kColumns = 32 * kHalves;  // over the four lanes of a row
    uint4 w[MT][2], x[kHalves][NT];
};

// The place in the cache of output n of row r, if it has one.
struct AppendPlace {
    int64_t at = -1;
    bool is_value;

    __device__ AppendPlace(const SmallMArgs& args, int64_t row, int64_t n) {
        const AppendArgs& to = args.append;
        if (!to.keys || n < to.first || n >= args.n) return;
        const int64_t slot = to.slot[row], place = to.length[row] - 1;
        if (slot < 0 || slot >= to.slots || place < 0 || place >= to.capacity) return;
        int c = static_cast<int>(n - to.first);
        is_value = c >= to.heads * to.d;
        if (is_value) c -= to.heads * to.d;
        if (c >= to.heads * to.d) return;
        const int h = c / to.d;
        at = ((slot * to.heads + h) * to.capacity + place) * to.d + c - h * to.d;
    }

    // Stores the value as rounded to y's type.
    __device__ void store(const SmallMArgs& args, float value) const {
        if (at < 0) return;
        if (args.y_type == Dtype::f16) {
            value = to_f32(from_f32<__half>(value));
        } else if (args.y_type == Dtype::bf16) {
            value = to_f32(from_f32<__nv_bfloat16>(value));
        }
        store_any(is_value ? args.append.values : args.append.keys, args.append.type, at, value);
    }
};

// x (k values) times a power of two that brings its largest magnitude to 2^14 or over, as f16 in
// `to`, by the threads of a block. Returns what undoes the power. f16 stays as it is.
template <class X>
__device__ inline float to_scaled_half(__half* to, const X* x, int k) {
    int exponent = 127 + 14;
    if constexpr (!std::is_same_v<X, __half>) {
        __shared__ float largest_of[kMostSlices];
        float largest = 0;
        for (int c = threadIdx.x * kPack; c < k; c += blockDim.x * kPack)
            for (const X value : load_pack<kPack>(x + c).values)
                largest = fmaxf(largest, fabsf(to_f32(value)));
        largest = block_max(largest, largest_of);
        // Powers whose inverse is a normal number too.
        exponent = max(__float_as_int(largest) >> 23, 28);
    }
    const float power = __int_as_float((127 + 14 + 127 - exponent) << 23);
    for (int c = threadIdx.x * kPack; c < k; c += blockDim.x * kPack) {
        const Pack<X, kPack> in = load_pack<kPack>(x + c);
        Pack<__half, kPack> out;
        for (int v = 0; v < kPack; ++v)
            out.values[v] = from_f32<__half>(__fmul_rn(to_f32(in.values[v]), power));
        store_pack(to + c, out);
    }
    return __int_as_float((exponent - 14) << 23);
}

// How sliced_kernel reads x.
enum class XFrom {
    memory,  // any rows, `Ahead` steps in flight as the weights
    normed,  // one row, which every block normalises into shared memory
    shared,  // one row, which every block converts to f16 in shared memory (to_scaled_half)
};

// The kernels of a gated product. The others lack its code, which takes time to be fetched.
template <int MT, int NT, XFrom From>
constexpr bool kMayGate = From == XFrom::shared || (MT == 2 && NT == 1);

// y for MT tiles of 16 outputs and NT tiles of 8 rows per block. Warp s sums slice s directly from
// memory, with `Ahead` steps in flight. From shared memory x takes few registers, so that two
// blocks fit a multiprocessor and one loads while the other ends. bf16 as f16 is exact down to
// 2^-32 of the row's largest value; e4m3 widens to f16 in fewer instructions.
template <class X, class W, int MT, int NT, int Ahead, XFrom From>
__global__ void __launch_bounds__(32 * kMostSlices, From == XFrom::shared ? 2 : 1)
    sliced_kernel(SmallMArgs args, const X* x, const W* __restrict__ w) {
    pdl_trigger();
    using Step = LaneStep<W, MT, NT>;
    constexpr bool kNormed = From == XFrom::normed, kShared = From == XFrom::shared;
    using M = std::conditional_t<kShared, __half, X>;  // what is multiplied
    constexpr int kOutputs = 16 * MT, kRows = 8 * NT, kStep = Step::kColumns;
    constexpr int kPitch = kOutputs + 4;              // sums of neighbouring lanes hit all banks
    extern __shared__ __align__(16) float partial[];  // [slices][kRows][kPitch], then a row
    const int slice = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // Of a gated product, rows 8 to 15 of a tile are the second factors of its rows 0 to 7.
    const bool gated = kMayGate<MT, NT, From> && args.up > 0;
    const int mine = gated ? kOutputs / 2 : kOutputs;
    const int64_t n0 = int64_t{blockIdx.y} * mine, row0 = int64_t{blockIdx.x} * kRows;
    const W* ws[2 * MT];  // past the end the last output and row are computed again
    const M* xs[NT];
#pragma unroll
    for (int i = 0; i < 2 * MT; ++i) {
        const int64_t n = min(n0 + 8 * (gated ? i / 2 : i) + g, args.n - 1);
        ws[i] = w + (gated && i % 2 == 1 ? args.up + n : n) * args.k;
    }
#pragma unroll
    for (int j = 0; j < NT; ++j)
        xs[j] = reinterpret_cast<const M*>(x) + min(row0 + 8 * j + g, args.rows - 1) * args.k;
    const int k = static_cast<int>(args.k), end = args.slice_begin(slice + 1) * kUnit;
    // Loads the columns from `first`. Past the last column: any weights, and zeros of x.
    const auto load_w = [&](Step& to, int first) {
        const int column = first + 8 * Step::kHalves * t;
        if (first >= end) return;
#pragma unroll
        for (int i = 0; i < 2 * MT; ++i)
            to.w[i / 2][i % 2] = load_once(ws[i] + (column < k ? column : 0));
    };
    const auto load_x = [&](Step& to, int first) {
        const int column = first + 8 * Step::kHalves * t;
        if (first >= end) return;
#pragma unroll
        for (int j = 0; j < NT; ++j)
#pragma unroll
            for (int half = 0; half < Step::kHalves; ++half)
                to.x[half][j] = column < k
                                    ? *reinterpret_cast<const uint4*>(xs[j] + column + 8 * half)
                                    : make_uint4(0, 0, 0, 0);
    };
    float sums[MT][NT][4] = {};
    const auto multiply = [&](const Step& step) {
#pragma unroll
        for (int half = 0; half < Step::kHalves; ++half) {
            Half w_half[MT][2], x_half[NT];
#pragma unroll
            for (int i = 0; i < 2 * MT; ++i)
                w_half[i / 2][i % 2] = weights_half<M, W>(step.w[i / 2][i % 2], half);
#pragma unroll
            for (int j = 0; j < NT; ++j) x_half[j] = as_half(step.x[half][j]);
            multiply_halves<M>(sums, w_half, x_half);
        }
    };
    Step steps[Ahead];
    int first = args.slice_begin(slice) * kUnit;
#pragma unroll
    for (int i = 0; i < Ahead; ++i) load_w(steps[i], first + i * kStep);
    // Columns that the registers do not hold: one step of every row for each of the row's four
    // lanes.
    for (int at = first + (Ahead + t) * kStep; at < min(end, k); at += 4 * kStep)
#pragma unroll
        for (int i = 0; i < 2 * MT; ++i) prefetch(ws[i] + at);
    // A thread finishes sums of one output: the number of threads is a multiple of the outputs.
    const int n = threadIdx.x % kOutputs;
    const EpilogueParams column = epilogue_params(args, n0 + n);
    const EpilogueParams up_column =
        gated ? epilogue_params(args, args.up + n0 + n) : EpilogueParams{};
    const int rows = static_cast<int>(min(int64_t{kRows}, args.rows - row0));
    const int first_row = threadIdx.x / kOutputs;
    const bool there = n < mine && n0 + n < args.n;
    const AppendPlace append_to(args, first_row < rows ? row0 + first_row : 0, n0 + n);
    const NormPack norm(args.norm_weight, args.norm_bias, kNormed ? k : 0);
    pdl_wait();
    float undo = 1;
    if constexpr (kNormed || kShared) {
        M* row = reinterpret_cast<M*>(partial + args.slices * kRows * kPitch);
        if constexpr (kNormed) {
            norm_row(row, x, k, args.norm_eps, norm);
        } else {
            undo = to_scaled_half(row, x, k);
        }
        __syncthreads();
        for (int j = 0; j < NT; ++j) xs[j] = row;
    }
#pragma unroll
    for (int i = 0; i < Ahead; ++i)
        if (!kShared) load_x(steps[i], first + i * kStep);
    const auto place = [&](int row) { return (row0 + row) * args.n + n0 + n; };
    // The residual of the first row is loaded early: it may be the only row.
    float residual = there && first_row < rows ? residual_at(args, place(first_row)) : 0.0f;
    for (; first < end; first += Ahead * kStep) {
#pragma unroll
        for (int i = 0; i < Ahead; ++i) {
            if (first + i * kStep >= end) break;
            if (kShared) load_x(steps[i], first + i * kStep);
            multiply(steps[i]);
            load_w(steps[i], first + (Ahead + i) * kStep);
            if (!kShared) load_x(steps[i], first + (Ahead + i) * kStep);
        }
    }
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < NT; ++j)
#pragma unroll
            for (int v = 0; v < 4; ++v)
                partial[(slice * kRows + 8 * j + 2 * t + v % 2) * kPitch + 16 * i + 8 * (v / 2) +
                        g] = sums[i][j][v];
    __syncthreads();
    if (!there) return;
    for (int row = first_row; row < rows; row += blockDim.x / kOutputs) {
        if (row != first_row) residual = residual_at(args, place(row));
        const auto sum_of = [&](int row_of_tile) {
            float sum = 0;
            for (int s = 0; s < args.slices; ++s)
                sum = __fadd_rn(sum, partial[(s * kRows + row) * kPitch + row_of_tile]);
            return kShared ? __fmul_rn(sum, undo) : sum;
        };
        const int row_of_tile = gated ? n + n / 8 * 8 : n;
        float value = apply_epilogue(args, column, sum_of(row_of_tile), residual);
        if (gated)
            value = gated_value(args, value,
                                apply_epilogue(args, up_column, sum_of(row_of_tile + 8), 0.0f));
        store_any(args.y, args.y_type, place(row), value);
        if (args.append.keys) {
            if (row == first_row) {
                append_to.store(args, value);
            } else {
                AppendPlace(args, row0 + row, n0 + n).store(args, value);
            }
        }
    }
}

// As many steps as fit the registers of 512 threads with another block resident, or all registers.
template <class W, int MT, int NT>
constexpr int ahead() {
    return MT * NT >= 4 ? sizeof(W) == 1 ? 1 : 2 : sizeof(W) == 1 ? 3 : 4;
}
constexpr int kMostAhead = 8;

// Whether blocks keep the row of x in shared memory, where a row's bits may depend on the number of
// rows: below 2^-32 of the largest value they might.
bool shares_row(const Context& ctx, const SmallMArgs& args) {
    constexpr int64_t kMostColumns = 32768;
    return !ctx.batch_invariant && args.rows == 1 && !args.norm_weight && args.k <= kMostColumns;
}

template <int MT, int NT>
void sliced_product(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    const int64_t outputs = args.up > 0 ? 8 * MT : 16 * MT;
    const dim3 blocks(static_cast<unsigned>(ceil_div(args.rows, 8 * NT)),
                      static_cast<unsigned>(ceil_div(args.n, outputs)));
    const int64_t sums = int64_t{4} * args.slices * (8 * NT) * (16 * MT + 4);
    with_small_m_types(x.dtype, w.dtype, [&](auto x_value, auto w_value) {
        using X = decltype(x_value);
        using W = decltype(w_value);
        constexpr int kAhead = ahead<W, MT, NT>();
        constexpr bool kOne = MT == 1 && NT == 1;
        constexpr int kMore = kOne && sizeof(W) == 2 ? kMostAhead : kAhead;
        const bool norms = kOne && args.norm_weight;
        const bool shares = kOne && std::is_same_v<W, fp8_t> && shares_row(ctx, args);
        require(args.up == 0 || shares || kMayGate<MT, NT, XFrom::memory>,
                "internal error: these tiles gate no product");
        // Long slices of 16 warps: such a block has a multiprocessor to itself.
        const int steps = static_cast<int>(ceil_div(args.units, args.slices)) * kUnit /
                          LaneStep<W, MT, NT>::kColumns;
        const bool more = args.slices == kMostSlices && steps >= kMostAhead &&
                          int64_t{blocks.x} * blocks.y <= multiprocessors();
        constexpr XFrom kNorms = kOne ? XFrom::normed : XFrom::memory;
        auto kernel = norms  ? sliced_kernel<X, W, MT, NT, kAhead, kNorms>
                      : more ? sliced_kernel<X, W, MT, NT, kMore, XFrom::memory>
                             : sliced_kernel<X, W, MT, NT, kAhead, XFrom::memory>;
        if constexpr (kOne && std::is_same_v<W, fp8_t>) {
            if (shares) kernel = sliced_kernel<X, W, MT, NT, kAhead, XFrom::shared>;
        }
        const int64_t row = norms || shares ? args.k * int64_t{sizeof(X)} : 0;
        const int64_t shared = sums + row;
        if (shared > 48 << 10)
            allow_shared(reinterpret_cast<const void*>(kernel), static_cast<int>(shared));
        pdl_launch(ctx, kernel, blocks, 32 * args.slices, static_cast<size_t>(shared), args,
                   static_cast<const X*>(x.data), static_cast<const W*>(w.data));
    });
}

}  // namespace

bool has_small_m_product(const Tensor& x, const Matrix& w) {
    if (!is_16_bit(x.dtype) || (w.values.dtype != x.dtype && !has_row_scales(w.values.dtype)))
        return false;
    const uintptr_t pointers =
        reinterpret_cast<uintptr_t>(x.data) | reinterpret_cast<uintptr_t>(w.values.data);
    const int64_t k = w.values.dim(1), vector = 16 / static_cast<int64_t>(size_of(w.values.dtype));
    return pointers % 16 == 0 && k % vector == 0;
}

bool norms_row(const Tensor& x, const Matrix& w, const Norm& norm) {
    const SmallMArgs args(x, x, w, {});  // y's type is not used here
    // Between short rows and many outputs the norm's kernel gives the next blocks time to read.
    const bool is_small = args.k <= 1024 || (w.values.dtype == x.dtype &&
                                             std::max(args.k, args.n) <= kMostShortColumns);
    const bool pays = is_small || args.n >= kManyOutputs;
    return has_small_m_product(x, w) && args.rows == 1 && args.n < kVocabulary && pays &&
           in_packs(args.k, {norm.weight.data, norm.bias.data}) &&
           args.k <= args.slices * 32 * kPack;
}

bool gates_rows(const Tensor& x, const Matrix& w) {
    if (x.rows() > 8) return false;
    if (takes_one_row(x, w)) return true;
    return is_quantized(w.values.dtype) ||
           (w.values.dim(0) >= kVocabulary && has_small_m_product(x, w));
}

bool appends_rows(const Tensor& x, const Matrix& w, const Append& append) {
    return has_small_m_product(x, w) && x.rows() <= 32 && w.values.dim(0) < kVocabulary &&
           !is_quantized(append.keys.dtype) && append.rows.blocks() == 1 &&
           append.rows.max_queries == 1 && append.rows.sequences() == x.rows();
}

// Measured on an H200 (docs/kernels/linear.md). The choices do not change a row's bits.
void small_m_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                     const LinearFusion& with) {
    const SmallMArgs args(y, x, w, then, with);
    const Tensor& values = w.values;
    if (short_row_product(ctx, args, with, x, values)) return;
    const bool layer_norm = with.norm.weight && with.norm.kind != NormKind::rms;
    if (!layer_norm && !with.append && takes_one_row(x, w))
        return one_row_product(ctx, args, x, values);
    const bool vocabulary = values.dim(0) >= kVocabulary;
    const bool shares = values.dtype == Dtype::fp8 && shares_row(ctx, args);
    if (args.rows <= 8)
        return vocabulary && !shares ? sliced_product<2, 1>(ctx, args, x, values)
                                     : sliced_product<1, 1>(ctx, args, x, values);
    // Short slices are many warps per block, so the GPU holds few blocks: larger ones are used.
    const bool many_warps = args.n > 2560 && args.n < kManyOutputs;
    if (args.rows <= 16)
        return vocabulary || many_warps ? sliced_product<2, 2>(ctx, args, x, values)
                                        : sliced_product<1, 2>(ctx, args, x, values);
    if (args.rows <= 32 && !vocabulary) return sliced_product<1, 4>(ctx, args, x, values);
    const auto tiles = [&](int n, int t) { return ceil_div(args.n, n) * ceil_div(args.rows, t); };
    const bool few_tiles = tiles(32, 32) < 80 && (args.rows <= 64 || values.dtype != x.dtype);
    const bool batch = vocabulary ? args.rows > 64 : !few_tiles;
    if (batch && small_m_wgmma_product(ctx, args, x, values)) return;
    // Parallel slices are faster if there are few blocks, the more so the longer the slices.
    if (tiles(32, 32) <= (args.k >= 4096 ? 160 : 80))
        return sliced_product<2, 4>(ctx, args, x, values);
    if (args.rows <= (vocabulary ? 32 : 128))
        return tiled_product(ctx, args, x, values, Tile::k32x32);
    tiled_product(ctx, args, x, values, tiles(128, 64) >= 400 ? Tile::k128x64 : Tile::k64x64);
}

}  // namespace hark::cuda
