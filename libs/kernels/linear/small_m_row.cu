// linear of one row and weights of its 16-bit type: sliced_kernel's sums, in blocks that stay.
// While a block adds up the slices of one tile of outputs, loads of the next one are in flight.
#include "kernels/linear/small_m_row.cuh"

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/norm/rms_norm.cuh"

namespace hark::cuda {
namespace {

constexpr int kRowOutputs = 16;  // rows of w of a tile; of a gated product 8 of each half
constexpr int kRowPitch = 20;    // floats of a slice's sums in shared memory
constexpr int kRowStep = 32;     // columns
constexpr int kRowWarps = 32;    // of the blocks of a multiprocessor together
constexpr int64_t kMostRowColumns = 32768;  // of x in shared memory
// And one less: two blocks of so few warps leave registers for more steps.
constexpr int kDeepSlices = 12;

// A lane's weights of a step: 8 columns of rows g and g + 8 of a tile, or of row g alone.
template <bool HalfTile>
struct RowStep {
    uint4 low, high;

    RowStep() = default;
    // upper: packs from row g to row g + 8.
    __device__ RowStep(const uint4* from, uint32_t upper)
        : low(load_once_early(from)), high(HalfTile ? uint4{} : load_once_early(from + upper)) {}
};

// A warp copies its slice of x, whole units, to shared memory.
__device__ inline void copy_slice(uint4* to, const uint4* x, int begin, int end) {
    constexpr int kAtOnce = 2;
#pragma unroll 1
    for (int first = begin / kPack + threadIdx.x % 32; first < end / kPack; first += 32 * kAtOnce) {
        uint4 packs[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
            if (first + 32 * i < end / kPack) packs[i] = x[first + 32 * i];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
            if (first + 32 * i < end / kPack) to[first + 32 * i] = packs[i];
    }
    __syncwarp();
}

// What a product's blocks share: its tiles, and what divides by the number of slices.
struct RowDivision {
    int tiles;
    uint32_t by_slices;  // 2^31 / slices, rounded up: exact below 2^27

    __device__ int slice_begin(const SmallMArgs& args, int slice) const {
        return static_cast<int>(uint64_t{static_cast<uint32_t>(slice * args.units)} * by_slices >>
                                31);
    }
};

// One of a tile's 16 rows of w, of a lane of the warp that finishes the tile.
struct RowOutput {
    int output;
    bool is_up;
    EpilogueParams params{1, 0};
    float residual = 0;

    // wanted: of the warp that finishes the tile.
    __device__ RowOutput(const SmallMArgs& args, int first, int outputs, bool wanted) {
        const int row = threadIdx.x % kRowOutputs;
        is_up = row >= outputs;
        output = first + row % outputs;
        if (wanted && args.bias) params.bias = args.bias[is_up ? args.up + output : output];
        if (wanted && !is_up) residual = residual_at(args, output);
    }
    // sums: [slices][kRowPitch]
    __device__ void write(const SmallMArgs& args, const float* sums) const {
        sums += threadIdx.x % kRowOutputs;
        float of_slice[kMostSlices];
#pragma unroll
        for (int s = 0; s < kMostSlices; ++s)
            of_slice[s] = s < args.slices ? sums[s * kRowPitch] : 0.0f;
        float sum = 0;
#pragma unroll
        for (const float value : of_slice) sum = __fadd_rn(sum, value);
        store_row(args, params, sum, residual, output, threadIdx.x % 32 < kRowOutputs && !is_up);
    }
};

// y for one tile of 16 rows of w after the other, or of 8. Warp s sums slice s directly from
// memory. The block meets after each tile; then one warp, another one each time, finishes it.
template <class X, bool Normed, bool HalfTile, bool Deep>
__global__ void __launch_bounds__(32 * (Deep ? kDeepSlices : kMostSlices), 2)
    row_kernel(SmallMArgs args, RowDivision division, const uint4* x, const uint4* __restrict__ w) {
    pdl_trigger();
    // Steps whose weights a lane has in 32 registers, 48 if Deep.
    constexpr int kAhead = HalfTile ? 8 : Deep ? 6 : 4, kPacks = kRowStep / kPack;
    extern __shared__ __align__(16) uint4 row_memory[];  // x, then [2][slices][kRowPitch] floats
    const int slice = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int outputs = HalfTile || args.up > 0 ? kRowOutputs / 2 : kRowOutputs;
    const int begin = division.slice_begin(args, slice) * kUnit;
    const int columns = division.slice_begin(args, slice + 1) * kUnit - begin;
    // Of rows of w, in packs of 8 values.
    const auto stride = static_cast<uint32_t>(args.k) / kPack;
    const uint32_t upper = args.up > 0 ? static_cast<uint32_t>(args.up) * stride : 8 * stride;
    const auto first_pack = [&](int tile) {
        return static_cast<uint32_t>(tile * outputs + g) * stride + begin / kPack + t;
    };
    RowStep<HalfTile> steps[kAhead];
    int tile = blockIdx.x, turn = slice;
    uint32_t own = first_pack(tile);
    float* sums = reinterpret_cast<float*>(row_memory + stride);
    // x comes after whatever has been requested before it. So that is no more than the registers
    // hold, and the norm's weights are first (docs/kernels/log/decode_step.md).
    const int channels = static_cast<int>(args.k);
    const RmsWeights<1> norm_weights(args.norm_weight, Normed ? channels : 0);
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
        if (i * kRowStep < columns) steps[i] = RowStep<HalfTile>(w + own + i * kPacks, upper);
    pdl_wait();
    if constexpr (Normed) {
        rms_norm_row(reinterpret_cast<X*>(row_memory), reinterpret_cast<const X*>(x), channels,
                     args.norm_eps, norm_weights);
        __syncthreads();
    } else {
        copy_slice(row_memory, x, begin, begin + columns);
    }
    const uint4* const row = row_memory + begin / kPack + t;
#pragma unroll 1
    for (int round = 0; tile < division.tiles; ++round) {
        const int first_output = tile * outputs;
        const bool finishes = turn == 0;
        turn = finishes ? args.slices - 1 : turn - 1;
        const RowOutput output(args, first_output, outputs, finishes);
        tile += gridDim.x;
        const bool has_next = tile < division.tiles;
        const uint32_t next = first_pack(tile);
        float of_row[1][1][4] = {};
#pragma unroll 1
        for (int first = 0; first < columns; first += kAhead * kRowStep) {
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const int at = first + i * kRowStep;
                if (at >= columns) break;
                const Half w_half[1][2] = {{as_half(steps[i].low), as_half(steps[i].high)}};
                const Half x_half[1] = {as_half(row[at / kPack])};
                multiply_halves<X>(of_row, w_half, x_half);
                const bool ends = at + kAhead * kRowStep >= columns;
                const uint32_t pack = ends ? next + i * kPacks : own + at / kPack + kAhead * kPacks;
                if (!ends || has_next) steps[i] = RowStep<HalfTile>(w + pack, upper);
            }
        }
        own = next;
        float* const tile_sums = sums + round % 2 * args.slices * kRowPitch;
        if (t == 0) {
            tile_sums[slice * kRowPitch + g] = of_row[0][0][0];
            tile_sums[slice * kRowPitch + 8 + g] = of_row[0][0][2];
        }
        __syncthreads();
        if (finishes) output.write(args, tile_sums);
    }
}

}  // namespace

bool takes_one_row(const Tensor& x, const Matrix& w) {
    const Tensor& values = w.values;
    return x.rows() == 1 && values.dtype == x.dtype && has_small_m_product(x, w) &&
           values.dim(1) % kUnit == 0 && values.dim(1) <= kMostRowColumns &&
           values.dim(0) % kRowOutputs == 0;
}

bool norms_one_row(const Tensor& x, const Matrix& w, const Norm& norm) {
    if (!takes_one_row(x, w)) return false;
    const SmallMArgs args(x, x, w, {});  // y's type is not used here
    return in_packs(args.k, {norm.weight.data}) &&
           args.k <= kPack * std::min(32 * args.slices, kMostRmsThreads);
}

void one_row_product(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    const int64_t resident = int64_t{kRowWarps / args.slices} * multiprocessors();
    const bool is_deep = args.slices == kDeepSlices || args.slices == kDeepSlices - 1;
    // Few outputs: tiles of eight, so that more multiprocessors read. And vocabularies that would
    // have six steps of both rows in registers.
    const bool half = args.up == 0 && (args.n / (kRowOutputs / 2) <= resident ||
                                       (is_deep && args.n >= kVocabulary));
    const bool deep = !half && is_deep;
    const int64_t tiles = args.n / (half || args.up > 0 ? kRowOutputs / 2 : kRowOutputs);
    const size_t shared = static_cast<size_t>(args.k) * sizeof(__half) +
                          2 * static_cast<size_t>(args.slices * kRowPitch) * sizeof(float);
    const RowDivision division{static_cast<int>(tiles),
                               static_cast<uint32_t>(ceil_div(int64_t{1} << 31, args.slices))};
    const auto launch = [&](auto kernel) {
        if (shared > 48 << 10)
            allow_shared(reinterpret_cast<const void*>(kernel), static_cast<int>(shared));
        pdl_launch(ctx, kernel, static_cast<unsigned>(std::min(tiles, resident)), 32 * args.slices,
                   shared, args, division, static_cast<const uint4*>(x.data),
                   static_cast<const uint4*>(w.data));
    };
    const auto with_type = [&](auto type) {
        using X = decltype(type);
        const auto with_norm = [&](auto normed) {
            launch(half   ? row_kernel<X, normed(), true, false>
                   : deep ? row_kernel<X, normed(), false, true>
                          : row_kernel<X, normed(), false, false>);
        };
        args.norm_weight ? with_norm(std::true_type()) : with_norm(std::false_type());
    };
    x.dtype == Dtype::f16 ? with_type(__half{}) : with_type(__nv_bfloat16{});
}

}  // namespace hark::cuda
