// Logits of 65 to 128 rows on Hopper: box_kernel's products, in blocks that stay. While a block
// writes a tile, the copies of the next one are in flight.
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/linear/small_m_boxes.cuh"
#include "kernels/linear/small_m_boxes_product.cuh"

namespace hark::cuda {
namespace {

using namespace small_m_boxes;

using VocabularyShape = Shape<128, 64, 1, 8>;

#if HARK_HOPPER_CODE

// One thread: starts the copies of all tiles of a block, which are the outputs from 64 * blockIdx.x
// on, gridDim.x tiles apart.
template <class S>
__device__ void copy_tiles(unsigned char* stages, Barriers<S>& barriers, const Maps& maps,
                           const SmallMArgs& args, int tiles) {
    const int own = (tiles - static_cast<int>(blockIdx.x) + gridDim.x - 1) / gridDim.x;
    const int all = own * args.units;
    const auto start_w = [&](int at, int i) {
        const int tile = blockIdx.x + i / args.units * gridDim.x;
        arrive_expecting(barriers.full[at], S::kStageBytes);
        copy_box(stages + at * S::kStageBytes + S::kRows * kUnit * 2, maps.w, barriers.full[at],
                 i % args.units * kUnit, tile * S::kOutputs);
    };
    const auto start_x = [&](int at, int i) {
        copy_box(stages + at * S::kStageBytes, maps.x, barriers.full[at], i % args.units * kUnit,
                 0);
    };
    // The first stages are empty, and weights can be read before the previous kernels end.
    const int early = min(all, S::kStages);
    for (int i = 0; i < early; ++i) start_w(i, i);
    pdl_wait();
    for (int i = 0; i < early; ++i) start_x(i, i);
    Place<S::kStages> place;
    place.advance(early);
    for (int i = early; i < all; ++i, place.advance()) {
        wait(barriers.empty[place.at], place.parity ^ 1);
        start_w(place.at, i);
        start_x(place.at, i);
    }
}

// A warp writes its part of the tile whose first output is n0. A store has 4 rows of 8 neighbours.
template <class S>
__device__ void write_sums(const SmallMArgs& args, const Sums<S>& sums, int n0) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int row0 = S::warp_row(warp) + t;
    n0 += S::warp_output(warp) + row_of(g);
    float* const y = static_cast<float*>(args.y);
#pragma unroll
    for (int j = 0; j < 2 * S::kRowTiles; ++j) {
        const int row = row0 + 4 * j;
        if (row >= args.rows) break;
#pragma unroll
        for (int i = 0; i < 2 * kOutputTiles; ++i) {
            const int n = n0 + 8 * i;
            // As apply_epilogue() has it: -0 becomes 0.
            if (n < args.n)
                y[row * args.n + n] = __fadd_rn(sums[i / 2][j / 2][i % 2 * 2 + j % 2], 0.0f);
        }
    }
}

#endif

template <class T, class S>
__global__ void __launch_bounds__(kThreads, 1)
    vocabulary_kernel(const __grid_constant__ Maps maps, const __grid_constant__ SmallMArgs args,
                      int tiles) {
#if HARK_HOPPER_CODE
    pdl_trigger();
    extern __shared__ unsigned char memory[];
    __shared__ Barriers<S> barriers;
    unsigned char* const stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    if (threadIdx.x == kComputing) begin_copies<S>(maps, barriers);
    __syncthreads();
    if (threadIdx.x >= kComputing) {
        if (threadIdx.x == kComputing) copy_tiles<S>(stages, barriers, maps, args, tiles);
        __syncwarp();
        pdl_wait();
        return;
    }
    pdl_wait();
    Place<S::kStages> place;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        Sums<S> totals = {}, sums;
#pragma unroll 1
        for (int slice = 0; slice < args.slices; ++slice) {
            sum_slice<T, S>(sums, stages, barriers, place,
                            args.slice_begin(slice + 1) - args.slice_begin(slice));
            add<S>(totals, sums);
        }
        write_sums<S>(args, totals, tile * S::kOutputs);
    }
#endif
}

template <class T>
void launch_vocabulary(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    using S = VocabularyShape;
    const auto kernel = vocabulary_kernel<T, S>;
    const int bytes = S::kStages * S::kStageBytes + 1024;  // to align it
    allow_shared(reinterpret_cast<const void*>(kernel), bytes);
    const auto tiles = static_cast<int>(ceil_div(args.n, S::kOutputs));
    pdl_launch(ctx, kernel, static_cast<unsigned>(std::min(tiles, multiprocessors())), kThreads,
               static_cast<size_t>(bytes), maps_of<S>(args, x, w), args, tiles);
}

}  // namespace

bool vocabulary_product(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    using S = VocabularyShape;
    const bool plain = !args.bias && !args.residual && args.activation == Activation::none;
    if (!plain || args.y_type != Dtype::f32 || args.n < kVocabulary || !has_box_form(args, x, w) ||
        !has_hopper_code(reinterpret_cast<const void*>(vocabulary_kernel<__half, S>)))
        return false;
    if (x.dtype == Dtype::f16) {
        launch_vocabulary<__half>(ctx, args, x, w);
    } else {
        launch_vocabulary<__nv_bfloat16>(ctx, args, x, w);
    }
    return true;
}

}  // namespace hark::cuda
