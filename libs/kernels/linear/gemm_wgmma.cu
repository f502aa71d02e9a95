// linear for many rows on Hopper: with the exact GELU, or of e4m3. Two warpgroups of a block take
// tiles in turn: one finishes its sums (bias, GELU) while the other's products fill the matrix
// units. One thread of a third warpgroup starts the copies.
#include "kernels/linear/gemm_wgmma.cuh"

#include "kernels/cuda/clusters.cuh"
#include "kernels/linear/fp8_rows.cuh"
#include "kernels/linear/gemm.cuh"
#include "kernels/linear/gemm_wgmma_scaled.cuh"

namespace hark::cuda {
namespace {

using namespace hopper;
using namespace gemm_wgmma;

// Loads the scales of a tile to shared memory.
template <class S>
__device__ void load_scales(Scales<S>& scales, const Product& args, int row, int output, int group,
                            int parity) {
    const int thread = threadIdx.x % kGroup;
    for (int i = thread; i < S::kRows; i += kGroup)
        scales.x[group][parity][i] = row + i < args.rows ? args.x_scales[row + i] : 0.0f;
    scales.w[group][parity][thread] =
        output + thread < args.n ? args.w_scales[output + thread] : 0.0f;
}

// A warpgroup computes every other tile of its block.
template <class T, class Y, class S>
__device__ void multiply_tiles(Shared<T, S>& shared, const Product& args, int rank, int group) {
    const int thread = threadIdx.x % kGroup, warp = thread / 32, lane = thread % 32;
    // Each warp reports to both blocks that it has read a stage.
    const auto release = [&](int stage) {
        if (lane < kPair) arrive_at(lane, shared.empty[stage]);
    };
    Place<S::kStages> place;
    Schedule<S> tiles(args.rows, args.n, rank);
    if (group == 1) {
        tiles.advance();
        place.advance(args.steps);
        pass_turn(group);
    }
    pdl_wait();
    for (int round = 0; tiles.has_tile(); ++round) {
        int row, output;
        tiles.place(row, output);
        float sums[S::kParts][64];
        int before = 0;
        wait_for_turn(group);
        for (int step = 0; step < args.steps; ++step) {
            wait(shared.full[place.at], place.parity);
            const uint64_t x = factor(shared.x[place.at]), w = factor(shared.w[place.at]);
            fence_products();
#pragma unroll
            for (int k = 0; k < 128 / 32; ++k)
#pragma unroll
                for (int part = 0; part < S::kParts; ++part)
                    multiply(T{}, sums[part], moved(x, part * 64 * 128 + k * 32), moved(w, k * 32),
                             step > 0 || k > 0);
            commit_products();
            wait_products<1>();
            if (step > 0) release(before);
            before = place.at;
            place.advance();
        }
        pass_turn(group);
        // The bias and the residual arrive while the last products are computed.
        const Corner at = {row + warp * 16 + lane / 4, output, lane % 4};
        float* const bias = shared.bias[group][round % 2];
        const bool biased = args.bias && output + thread < args.n;
        bias[thread] = biased ? args.bias[output + thread] : 0.0f;
        if constexpr (sizeof(T) == 1)
            load_scales<S>(shared.scales, args, row, output, group, round % 2);
        sync_part(1 + group, kGroup);
        wait_products<0>();
#pragma unroll
        for (int part = 0; part < S::kParts; ++part) pin(sums[part]);
        release(before);
        if constexpr (sizeof(T) == 1) {
            const TileFactors factors = {shared.scales.x[group][round % 2],
                                         shared.scales.w[group][round % 2], bias};
            write_scaled<Y>(args, at, sums, factors);
        } else {
            write<Y>(args, at, sums, bias);
        }
        tiles.advance();
        tiles.advance();
        place.advance(args.steps);
    }
}

template <class T, class S>
__device__ void copy_stages(Shared<T, S>& shared, const Maps& maps, const Product& args, int rank) {
    constexpr int kHalf = S::kRows / kPair;
    const auto start_w = [&](int at, int step, int output) {
        arrive_expecting(shared.full[at], (S::kRows + kOutputs) * kDepth<T> * sizeof(T));
        copy_box(shared.w[at], maps.w, shared.full[at], step * kDepth<T>, output);
    };
    const auto start_x = [&](int at, int step, int row) {
        copy_box_to((1 << kPair) - 1, shared.x[at][rank * kHalf], maps.x, shared.full[at],
                    step * kDepth<T>, row + rank * kHalf);
    };
    copy_tiles(Schedule<S>(args.rows, args.n, rank), args.steps, args.uploaded, shared.empty,
               start_w, start_x);
}

// Factors of T, y of Y.
template <class T, class Y, class S>
__global__ void __launch_bounds__(kThreads, 1)
    many_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Product args) {
#if HARK_HOPPER_CODE
    pdl_trigger();
    extern __shared__ unsigned char memory[];
    Shared<T, S>& shared =
        *reinterpret_cast<Shared<T, S>*>(memory + (1024 - shared_address(memory) % 1024) % 1024);
    const int rank = cluster_rank();
    make_barriers(maps, shared.full, shared.empty, kPair * kGroup / 32);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    if (warp < 4) {
        give_registers<kCopyRegisters>();
        if (threadIdx.x == 0) {
            copy_stages<T, S>(shared, maps, args, rank);
        } else {
            pdl_wait();
        }
        __syncwarp();
    } else {
        take_registers<kRegisters>();
        multiply_tiles<T, Y, S>(shared, args, rank, warp / 4 - 1);
    }
    sync_cluster();  // the other block may still send rows here and report reads
#endif
}

template <class T, class Y, class S>
void launch(Context& ctx, const Product& args, const Tensor& x, const Tensor& w) {
    const auto kernel = many_kernel<T, Y, S>;
    constexpr int kBytes = sizeof(Shared<T, S>) + 1024;  // 1024: to align it
    const auto map = [](const Tensor& of, uint32_t rows) {
        const auto k = static_cast<uint64_t>(of.dim(-1)), n = static_cast<uint64_t>(of.rows());
        return tile_map(of.dtype, of.data, {k, n}, {k * sizeof(T)}, {kDepth<T>, rows});
    };
    const Maps maps = {map(x, S::kRows / kPair), map(w, kOutputs)};
    const int64_t pairs = ceil_div(args.rows, S::kRows) * ceil_div(args.n, kPair * kOutputs);
    ClusterLaunch start(ctx, kernel, kPair, kThreads, kBytes);
    start.start(std::min(pairs, start.most_clusters()), maps, args);
}

template <class T, class Y>
void launch(Context& ctx, const Product& args, const Tensor& x, const Tensor& w) {
    // Larger tiles read less; smaller ones leave less of the last round empty. The bits are the
    // same: the sums of every tile take the columns in the same order.
    const auto rounds = [&](int rows) {
        const int64_t tiles = ceil_div(args.rows, rows) * ceil_div(args.n, kOutputs);
        return ceil_div(tiles, multiprocessors()) * rows;
    };
    if (rounds(128) < rounds(192)) return launch<T, Y, Shape<2>>(ctx, args, x, w);
    launch<T, Y, Shape<3>>(ctx, args, x, w);
}

}  // namespace

bool has_wgmma_product(const Tensor& y, const Tensor& x, const Matrix& w, const Epilogue& then) {
    const bool hopper =
        has_hopper_code(reinterpret_cast<const void*>(many_kernel<__half, __half, Shape<2>>));
    const bool as_stored = w.values.dtype == x.dtype;
    const uintptr_t pointers = reinterpret_cast<uintptr_t>(x.data) |
                               (as_stored ? reinterpret_cast<uintptr_t>(w.values.data) : 0);
    return hopper && then.activation == Activation::gelu && !then.residual && is_16_bit(x.dtype) &&
           (y.dtype == x.dtype || y.dtype == Dtype::f32) && pointers % 16 == 0 &&
           x.dim(-1) % 8 == 0;
}

void wgmma_product(Context& ctx, Tensor y, Tensor x, const Block& w, const Tensor& bias) {
    const int64_t n = w.values.dim(0), stride = y.dim(-1);
    std::byte* const to =
        static_cast<std::byte*>(y.data) + w.first * static_cast<int64_t>(size_of(y.dtype));
    const bool wide =
        y.dtype == x.dtype && reinterpret_cast<uintptr_t>(to) % 16 == 0 && (n | stride) % 8 == 0;
    const float* const biases = bias ? bias.as<float>() + w.first : nullptr;
    const auto steps = static_cast<int>(ceil_div(x.dim(-1), kDepth<__half>));
    const Product args = {.y = to,
                          .bias = biases,
                          .y_type = y.dtype,
                          .rows = x.rows(),
                          .n = n,
                          .stride = stride,
                          .steps = steps,
                          .wide = wide,
                          .uploaded = w.uploaded};
    if (x.dtype == Dtype::f16) return launch<__half, __half>(ctx, args, x, w.values);
    launch<__nv_bfloat16, __nv_bfloat16>(ctx, args, x, w.values);
}

bool has_fp8_wgmma_product(const Tensor& x, const Matrix& w, const Epilogue& then) {
    return takes_fp8_rows(x, w) &&
           has_hopper_code(reinterpret_cast<const void*>(many_kernel<fp8_t, __half, Shape<2>>)) &&
           (then.activation == Activation::gelu || then.activation == Activation::none);
}

void fp8_wgmma_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                       const Norm& norm) {
    const Fp8Rows rows = to_fp8_rows(ctx, x, norm);
    const int64_t n = w.values.dim(0);
    const uintptr_t pointers =
        reinterpret_cast<uintptr_t>(y.data) | reinterpret_cast<uintptr_t>(then.residual.data);
    const Product args = {.y = y.data,
                          .bias = then.bias ? then.bias.as<float>() : nullptr,
                          .y_type = y.dtype,
                          .rows = x.rows(),
                          .n = n,
                          .stride = n,
                          .steps = static_cast<int>(ceil_div(x.dim(-1), kDepth<fp8_t>)),
                          .wide = is_16_bit(y.dtype) && pointers % 16 == 0 && n % 8 == 0,
                          .uploaded = true,
                          .x_scales = rows.scales.as<float>(),
                          .w_scales = w.scales.as<float>(),
                          .residual = then.residual.data,
                          .gelu = then.activation == Activation::gelu};
    if (y.dtype == Dtype::bf16)
        return launch<fp8_t, __nv_bfloat16>(ctx, args, rows.values, w.values);
    launch<fp8_t, __half>(ctx, args, rows.values, w.values);
}

}  // namespace hark::cuda
