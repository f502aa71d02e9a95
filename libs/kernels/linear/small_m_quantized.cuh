// Products of quantised weights of few rows, directly from the blocks and on the matrix units. For
// many rows gemm.cu converts the weights.
//
// A warp multiplies 16 rows of w by up to 32 rows of x. It takes a slice of the columns, in chunks,
// and the block adds the slices in order, so a row's bits do not depend on other rows. Chunks
// go to shared memory as stored. There the quants, which 16-bit types hold exactly, become operands
// of mma.m16n8k16, and the sums of values that share a scale are multiplied by it in f32. Minima
// are multiplied by the sum of x over these values, which is a product with ones.
#pragma once

#include <cuda_pipeline.h>

#include "kernels/cuda/hopper.cuh"
#include "kernels/elementwise/rows.cuh"
#include "kernels/linear/quantized_one_row.cuh"

namespace hark::cuda {

constexpr int kPitch = kGroupRows + 4;  // of a row's sums in shared memory
// Blocks that follow one another where tiles may be empty, so that the others fill the GPU evenly.
constexpr int64_t kBlocksInTurn = 8;

// How a product is divided among warps.
struct Division {
    int slices;                   // warps of a block
    int stages;                   // chunks in flight per warp: 1 or 2
    int together;                 // groups after which the block meets: 1 or 2
    int slice_bytes, sums_bytes;  // of shared memory: a slice's chunks; all slices' sums of a group

    int bytes() const { return slices * slice_bytes + 2 * together * sums_bytes; }
};

// The groups of 16 rows of w. Rows 8 to 15 of a gated product's group are the second factors of its
// rows 0 to 7.
struct Groups {
    int n, outputs;         // y's columns; those of a group
    int64_t stride, upper;  // of w in bytes; from a group's first row to its row 8

    // up: of a gated product, from the first factors' rows to those of the second ones
    __device__ Groups(const SmallMArgs& args, int64_t stride, bool gated, int64_t up)
        : n(static_cast<int>(args.n)),
          outputs(gated ? kGroupRows / 2 : kGroupRows),
          stride(stride),
          upper(gated ? up : 8 * stride) {}
    __device__ bool gated() const { return outputs < kGroupRows; }
    __device__ int count() const { return (n + outputs - 1) / outputs; }
    // From w to the group's first row, in bytes.
    __device__ int64_t first(int group) const { return group * outputs * stride; }
    // Of eight rows from the first one or from row 8 on, those that exist.
    __device__ int rows(int group, int half) const {
        return n - group * outputs - (gated() ? 0 : 8 * half);
    }
};

// Writes y of one group from the sums of its slices, by the 16 lanes of a row.
template <class Tile>
__device__ void finish_row(const SmallMArgs& args, const Division& division, const Groups& groups,
                           const float* sums, const Tile& tile, int row, int group) {
    const int lane = threadIdx.x % kGroupRows, n = group * groups.outputs + lane;
    if (lane >= groups.outputs || n >= groups.n) return;
    const int64_t place = int64_t{tile.to(row)} * args.n + n;
    const float residual = residual_at(args, place);
    const auto value_of = [&](int row_of_group, const EpilogueParams& params) {
        float sum = 0;
        for (int s = 0; s < division.slices; ++s)
            sum = __fadd_rn(sum, sums[(s * tile.rows + row) * kPitch + row_of_group]);
        return apply_epilogue(args, params, sum, residual);
    };
    float value = value_of(lane, tile.params(args, n));
    if (groups.gated())
        value = gated_value(args, value, value_of(lane + 8, tile.up_params(args, n)));
    store_any(args.y, args.y_type, place, value);
}

// The sums of 16 rows of w and up to 8 NT rows of x, as OneRow's of one.
template <class X, class Block, int NT>
class ManyRows {
  public:
    using Shape = ChunkShape<Block>;
    static constexpr int kRows = 8 * NT, kMostSlices = cuda::kMostSlices, kBlocks = NT == 1 ? 2 : 1;

    template <class Tile>
    __device__ ManyRows(const X* x, const Tile& tile, int k) : rows_(tile.rows) {
        const int g = threadIdx.x % 32 / 4;
        for (int j = 0; j < NT; ++j) xs_[j] = x + int64_t{tile.from(min(8 * j + g, rows_ - 1))} * k;
    }

    __device__ void clear() {
        for (int j = 0; j < NT; ++j)
            for (int v = 0; v < 4; ++v) sums_[j][v] = 0;
    }
    __device__ void multiply(const uint8_t* low, const uint8_t* high, int first, int columns) {
        const X* xs[NT];
        for (int j = 0; j < NT; ++j) xs[j] = xs_[j] + first;
        multiply_chunk<X, Block>(sums_, low, high, xs, columns);
    }
    __device__ void store(float* sums) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int j = 0; j < NT; ++j)
#pragma unroll
            for (int v = 0; v < 4; ++v) {
                const int row = 8 * j + 2 * t + v % 2;
                if (row < rows_) sums[row * kPitch + 8 * (v / 2) + g] = sums_[j][v];
            }
    }

  private:
    int rows_;
    const X* xs_[NT];
    float sums_[NT][4];
};

// y for a group of 16 rows of w after the other, and the rows of x of a tile, which Rows multiplies.
// Warp s sums slice s. The block meets after one group or two. Some warps, in turn, finish them; the
// others continue.
template <class X, class Block, class Rows, class Tiles>
__global__ void __launch_bounds__(32 * Rows::kMostSlices, Rows::kBlocks)
    quantized_kernel(SmallMArgs args, Division division, Tiles tiles, const X* x,
                     const uint8_t* __restrict__ w, int64_t stride) {
    using Shape = typename Rows::Shape;
    // [slices][stages][kStage], [2 together][slices][rows][kPitch]
    extern __shared__ __align__(16) uint8_t memory[];
    pdl_trigger();
    const int slice = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
    if (Tiles::kChosen) pdl_wait();
    const auto tile = tiles.tile(args, blockIdx.x, Rows::kRows);
    if (tile.rows <= 0) return;
    if (tile.weights < 0) return write_nan(args, tile);
    w += tile.weights;
    const Groups groups(args, stride, tiles.gated(args), tiles.up(args, stride));
    const int k = static_cast<int>(args.k), rows = tile.rows, count = groups.count();
    const auto slice_begin = [&](int s) { return s * args.units / division.slices; };
    const int begin = slice_begin(slice), end = slice_begin(slice + 1);
    const uint8_t* stages = memory + slice * division.slice_bytes;
    const auto copied = static_cast<uint32_t>(__cvta_generic_to_shared(stages));
    int next_group = blockIdx.y, next_chunk = begin;
    const auto start_next = [&](int stage) {
        if (next_group < count) {
            const int at = next_chunk * Shape::kBytes;
            start_copy<Shape>(copied + stage * Shape::kStage, w + groups.first(next_group) + at,
                              stride, groups.upper,
                              {groups.rows(next_group, 0), groups.rows(next_group, 1)},
                              min(static_cast<int>(stride) - at, Shape::kBytes));
        }
        __pipeline_commit();
        if (++next_chunk < end) return;
        next_chunk = begin;
        next_group += gridDim.y;
    };
#pragma unroll 1
    for (int i = 0; i < division.stages; ++i) start_next(i);
    if (!Tiles::kChosen) pdl_wait();
    Rows product(x, tile, k);
    auto* all_sums = reinterpret_cast<float*>(memory + division.slices * division.slice_bytes);
    const auto sums_of = [&](int round) {
        return all_sums + (round & (2 * division.together - 1)) *
                              (division.sums_bytes / static_cast<int>(sizeof(float)));
    };
    int stage = 0, round = 0;
#pragma unroll 1
    for (int group = blockIdx.y; group < count; group += gridDim.y, ++round) {
        const auto rows_begin = reinterpret_cast<uintptr_t>(w + groups.first(group) + g * stride);
        product.clear();
#pragma unroll 1
        for (int chunk = begin; chunk < end; ++chunk) {
            if (division.stages == 1)
                __pipeline_wait_prior(0);
            else
                __pipeline_wait_prior(1);
            __syncwarp();
            const uint8_t* from = stages + stage * Shape::kStage + g * Shape::kPitch;
            const auto low = static_cast<uint32_t>(rows_begin + chunk * Shape::kBytes);
            const auto high = low + static_cast<uint32_t>(groups.upper);
            const int first = chunk * Shape::kColumns;
            product.multiply(from + low % 32, from + 8 * Shape::kPitch + high % 32, first,
                             min(Shape::kColumns, k - first));
            __syncwarp();
            start_next(stage);
            if (++stage == division.stages) stage = 0;
        }
        product.store(sums_of(round) + slice * rows * kPitch);
        const int next = group + gridDim.y;
        const bool first_of_two = division.together == 2 && round % 2 == 0;
        if (first_of_two && next < count) continue;
        __syncthreads();
        // Half a warp per row and group; another warp begins each time.
        const int half =
            (slice + round / division.together) % division.slices * 2 + threadIdx.x % 32 / 16;
        const int finished = division.together == 1 || first_of_two ? 1 : 2;
        for (int i = half; i < finished * rows; i += 2 * division.slices) {
            const int back = i % finished;
            finish_row(args, division, groups, sums_of(round - back), tile, i / finished,
                       group - back * static_cast<int>(gridDim.y));
        }
    }
}

// The division of a product by Rows of `groups` groups of rows of w, one tile after the other.
template <class Rows>
Division division_of(SmallMArgs& args, int64_t groups, int stages, int together) {
    using Shape = typename Rows::Shape;
    args.units = static_cast<int>(ceil_div(args.k, Shape::kColumns));
    int64_t most = Rows::kMostSlices;
    // Many groups keep the GPU busy with a few warps each.
    if (Rows::kRows == 1 && groups >= 8 * multiprocessors())
        most = std::min(most, ceil_div(args.units, 4));
    Division division{};
    // As few as give the longest one the same length.
    division.slices = static_cast<int>(ceil_div(args.units, ceil_div(args.units, most)));
    division.stages = stages;
    division.together = together;
    division.slice_bytes = Shape::kStage * stages;
    const int rows = static_cast<int>(std::min<int64_t>(args.rows, Rows::kRows));
    division.sums_bytes = division.slices * rows * kPitch * static_cast<int>(sizeof(float));
    return division;
}

// Whether a block of the GPU has the shared memory for tiles of up to 32 rows.
template <class Block>
bool has_room_for_many(SmallMArgs args) {
    return division_of<ManyRows<__half, Block, 4>>(args, 1, 1, 1).bytes() <= shared_limit();
}

// Returns false, and does nothing, if the shared memory is too small.
template <class Block, class Rows, class Tiles, class X>
bool launch_quantized(Context& ctx, SmallMArgs args, const Tiles& tiles, int64_t row_tiles,
                      const X* x, const uint8_t* w, int64_t stride, int stages, int together) {
    const int64_t group_count = ceil_div(args.n, tiles.gated(args) ? kGroupRows / 2 : kGroupRows);
    const Division division = division_of<Rows>(args, group_count * row_tiles, stages, together);
    const int shared = division.bytes(), limit = shared_limit();
    if (shared > limit) return false;
    const auto kernel = quantized_kernel<X, Block, Rows, Tiles>;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
    const int threads = 32 * division.slices;
    int resident = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads,
                                                             static_cast<size_t>(shared)));
    // Rounded down: a block more than there is room for would begin when the others end. If some
    // tiles are empty, and how many is not known here, several blocks follow one another.
    const int64_t room = int64_t{std::max(resident, 1)} * multiprocessors();
    int64_t of_tile = std::max<int64_t>(1, room / row_tiles);
    if constexpr (Tiles::kChosen)
        if (tiles.order) of_tile = ceil_div(kBlocksInTurn * room, row_tiles);
    const dim3 blocks(static_cast<unsigned>(row_tiles),
                      static_cast<unsigned>(std::min(group_count, of_tile)));
    pdl_launch(ctx, kernel, blocks, threads, static_cast<size_t>(shared), args, division, tiles, x,
               w, stride);
    return true;
}

// y for tiles of up to Rows::kRows rows, of which there are `row_tiles`, by the first division that
// fits the GPU. ManyRows of 32: only if has_room_for_many(). OneRow sums in another order; the other
// choices do not change a row's bits.
template <class Block, class Rows, class Tiles, class X>
void launch_quantized(Context& ctx, const SmallMArgs& args, const Tiles& tiles, int64_t row_tiles,
                      const X* x, const uint8_t* w, int64_t stride) {
    const auto launch = [&](int stages, int together) {
        return launch_quantized<Block, Rows>(ctx, args, tiles, row_tiles, x, w, stride, stages,
                                             together);
    };
    if (Rows::kRows > 8 ? launch(1, 1) : launch(2, 2) || launch(2, 1) || launch(1, 1)) return;
    fail("a block of this GPU has ", shared_limit(),
         " bytes of shared memory; quantised weights need 90112");
}

}  // namespace hark::cuda
