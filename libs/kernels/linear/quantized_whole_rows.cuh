// One row of x times quantised weights on Hopper: whole rows of w, which are contiguous whatever
// their length is, come by the copy engine in one piece. Of experts, one row per tile, and of
// products whose rows it cannot cut into chunks (quantized_row_tma.cuh).
#pragma once

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/linear/rows_of_tile.cuh"
#include "kernels/linear/small_m_quantized.cuh"
#include "kernels/norm/rms_norm.cuh"

namespace hark::cuda::whole_rows {

// Warps of a block that multiply, blocks of a multiprocessor, groups in flight per block, groups
// whose sums are kept; packs of a thread, if x is normed.
constexpr int kMostSlices = 8, kBlocks = 2, kMostStages = 4, kGroupsOfSums = 2, kNormPacks = 2;

// Sums of groups, [kGroupsOfSums][slices][kPitch], and the barriers of their warps.
struct SumsOfGroups {
    float* sums;
    uint64_t *written, *read;  // [kGroupsOfSums]
};

// The finishing warp's part of each group of 16 rows of w: it waits for the slices' sums, starts
// the copy of a later group to where this one was, and writes y.
template <class Tile, class StartNext>
__device__ void finish_groups(const SmallMArgs& args, const Tile& tile, bool gated,
                              const SumsOfGroups& shared, int groups, const StartNext& start_next) {
    const int outputs = gated ? kGroupRows / 2 : kGroupRows;
    const int row = threadIdx.x % kGroupRows, n = static_cast<int>(args.n);
    hopper::Place<kGroupsOfSums> place;
#pragma unroll 1
    for (int group = blockIdx.y; group < groups; group += gridDim.y, place.advance()) {
        const int output = group * outputs + row % outputs;
        const int64_t to = int64_t{tile.to(0)} * n + output;
        EpilogueParams params{};
        float residual = 0;
        if (output < n) {
            params = row < outputs ? tile.params(args, output) : tile.up_params(args, output);
            residual = residual_at(args, to);
        }
        hopper::wait(shared.written[place.at], place.parity);
        start_next();
        const float* sums = shared.sums + place.at * args.slices * kPitch + row;
        float sum = 0;
#pragma unroll 8
        for (int s = 0; s < args.slices; ++s) sum += sums[s * kPitch];
        __syncwarp();
        if (threadIdx.x % 32 == 0) hopper::arrive(shared.read[place.at]);
        float value = apply_epilogue(args, params, sum, residual);
        const float up = __shfl_down_sync(0xffffffff, value, kGroupRows / 2);
        if (gated) value = gated_value(args, value, up);
        if (threadIdx.x % 32 < outputs && output < n) store_any(args.y, args.y_type, to, value);
    }
}

// y of one row of x and, of experts, one of its pairs. Warp s sums slice s of each group of 16 rows
// of w; one more warp finishes them. Normed: of rms_norm(x), which every block computes.
// early: weights are requested before the wait; experts are ready_ids. A gated kernel of experts
// lets the next one start after its own wait, when they are ready.
template <class Rows, class Tiles, bool Normed>
__global__ void __launch_bounds__(32 * (kMostSlices + 1), kBlocks)
    whole_rows_kernel(SmallMArgs args, Tiles tiles, const typename Rows::X* x, const uint8_t* w,
                      int stride, int stages, bool early) {
#if HARK_HOPPER_CODE
    // [stages][kGroupRows * stride], x, if normed [k] of it, SumsOfGroups, [stages] barriers
    extern __shared__ __align__(128) uint8_t memory[];
    const bool gated = tiles.gated(args);
    const bool triggers_late = Tiles::kChosen && gated;
    if (!triggers_late) pdl_trigger();
    const int group_bytes = kGroupRows * stride, k = static_cast<int>(args.k);
    const int outputs = gated ? kGroupRows / 2 : kGroupRows;
    const int n = static_cast<int>(args.n), groups = (n + outputs - 1) / outputs;
    const int slice = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
    const bool finishes = slice == args.slices;
    uint8_t* inputs = memory + stages * group_bytes;
    auto* normed = reinterpret_cast<typename Rows::X*>(inputs + Rows::input_bytes(args.units));
    SumsOfGroups shared;
    shared.sums = reinterpret_cast<float*>(normed + (Normed ? k : 0));
    shared.written =
        reinterpret_cast<uint64_t*>(shared.sums + kGroupsOfSums * args.slices * kPitch);
    shared.read = shared.written + kGroupsOfSums;
    uint64_t* ready = shared.read + kGroupsOfSums;
    const bool copies = finishes && threadIdx.x % 32 == 0;
    if (copies) {
#pragma unroll 1
        for (int i = 0; i < stages; ++i) hopper::init(ready[i], 1);
        for (int i = 0; i < kGroupsOfSums; ++i) {
            hopper::init(shared.written[i], static_cast<uint32_t>(args.slices));
            hopper::init(shared.read[i], 1);
        }
        hopper::fence_init();
    }
    if (!early) pdl_wait();
    if (triggers_late) pdl_trigger();
    const auto tile = tiles.tile(args, blockIdx.x, 1);
    int next_group = blockIdx.y, next_stage = 0;
    const auto start_next = [&] {
        if (copies && next_group < groups && tile.weights >= 0) {
            const auto bytes =
                static_cast<uint32_t>(min(outputs, n - next_group * outputs) * stride);
            const uint8_t* from = w + tile.weights + int64_t{next_group} * outputs * stride;
            uint8_t* to = memory + next_stage * group_bytes;
            hopper::arrive_expecting(ready[next_stage], gated ? 2 * bytes : bytes);
            hopper::copy_bytes(to, from, bytes, ready[next_stage]);
            // Row 8 is the first one's second factor, in a last group of fewer rows too.
            if (gated)
                hopper::copy_bytes(to + outputs * stride, from + tiles.up(args, stride), bytes,
                                   ready[next_stage]);
        }
        next_group += gridDim.y;
        if (++next_stage == stages) next_stage = 0;
    };
    const typename Rows::X* row = x + int64_t{tile.from(0)} * k;
    const RmsWeights<kNormPacks> norm_weights(args.norm_weight, Normed ? k : 0);
    if (finishes)
#pragma unroll 1
        for (int i = 0; i < stages; ++i) start_next();
    if (early) pdl_wait();
    if constexpr (Normed) {
        rms_norm_row(normed, row, k, args.norm_eps, norm_weights);
        row = normed;
    }
    if (!finishes) Rows::load_inputs(inputs, row, k, args.units, slice, args.slices);
    __syncthreads();
    if (tile.weights < 0) return write_nan(args, tile);
    if (finishes) return finish_groups(args, tile, gated, shared, groups, start_next);
    Rows product(inputs, row, k, stride);
    const int begin = args.slice_begin(slice), end = args.slice_begin(slice + 1);
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    hopper::Place<kGroupsOfSums> place;
    int stage = 0;
    uint32_t parity = 0;
#pragma unroll 1
    for (int group = blockIdx.y; group < groups; group += gridDim.y, place.advance()) {
        hopper::wait(ready[stage], parity);
        product.clear();
#pragma unroll 1
        for (int unit = begin; unit < end; ++unit)
            product.multiply(memory + stage * group_bytes, unit);
        if (++stage == stages) stage = 0, parity ^= 1;
        hopper::wait(shared.read[place.at], place.parity ^ 1);
        float* sums = shared.sums + (place.at * args.slices + slice) * kPitch;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float sum = product.sum(half);
            sum += __shfl_xor_sync(0xffffffff, sum, 1);
            sum += __shfl_xor_sync(0xffffffff, sum, 2);
            if (t == 0) sums[2 * g + half] = sum;
        }
        __syncwarp();
        if (lane == 0) hopper::arrive(shared.written[place.at]);
    }
#endif
}

// A block's shared memory, `stages` groups among it; none if the product is not taken.
struct Shared {
    int stages = 0;
    size_t bytes = 0;
};

// Of args.k columns: as few warps as give the longest slice the same length. Takes nothing if Rows
// or the copy engine do not take such rows, or if it is not Hopper. places: distances between what
// is copied.
template <class Rows, class Tiles>
Shared divide(SmallMArgs& args, const Tiles& tiles, const uint8_t* w, int64_t stride,
              int64_t places) {
    const int64_t outputs = tiles.gated(args) ? kGroupRows / 2 : kGroupRows;
    // All copies are of multiples of 16 bytes.
    places |= static_cast<int64_t>(reinterpret_cast<uintptr_t>(w)) | outputs * stride |
              args.n % outputs * stride;
    const auto* const kernel = reinterpret_cast<const void*>(whole_rows_kernel<Rows, Tiles, false>);
    if (args.k % Rows::kMultiple != 0 || !Rows::takes(stride) || places % 16 != 0 ||
        !has_hopper_code(kernel))
        return {};
    const int64_t groups = args.rows * ceil_div(args.n, outputs);
    args.units = static_cast<int>(ceil_div(args.k, Rows::kColumns));
    args.slices =
        static_cast<int>(ceil_div(args.units, ceil_div(args.units, int64_t{kMostSlices})));
    const auto bytes = [&](int stages) {
        return static_cast<size_t>(stages * kGroupRows * stride + Rows::input_bytes(args.units)) +
               (args.norm_weight ? static_cast<size_t>(args.k) * sizeof(typename Rows::X) : 0) +
               kGroupsOfSums * static_cast<size_t>(args.slices * kPitch) * sizeof(float) +
               static_cast<size_t>(2 * kGroupsOfSums + stages) * sizeof(uint64_t);
    };
    const auto limit = static_cast<size_t>(shared_limit());
    const size_t share = limit / kBlocks - 1024;
    // No more than a block's groups.
    const int64_t of_block = ceil_div(groups, int64_t{kBlocks} * multiprocessors());
    int stages = static_cast<int>(std::min<int64_t>(kMostStages, of_block));
    while (stages > 2 && bytes(stages) > share) --stages;
    // A block of an expert has the multiprocessor to itself rather than less than two groups.
    if (bytes(stages) > (Tiles::kChosen ? limit : share)) return {};
    return {stages, bytes(stages)};
}

// Whether a product that divide() has divided computes x's rms_norm too.
inline bool norms(const SmallMArgs& args, const Norm& norm) {
    return in_packs(args.k, {norm.weight.data}) &&
           args.k <= kPack * std::min(kNormPacks * 32 * (args.slices + 1), kMostRmsThreads);
}

// A product that divide() has divided.
template <bool Normed, class Rows, class Tiles>
void start(Context& ctx, const SmallMArgs& args, const Shared& shared, const Tiles& tiles,
           const typename Rows::X* x, const uint8_t* w, int64_t stride, bool early) {
    const auto kernel = whole_rows_kernel<Rows, Tiles, Normed>;
    allow_shared(reinterpret_cast<const void*>(kernel), static_cast<int>(shared.bytes));
    const int threads = 32 * (args.slices + 1);
    int resident = 0;
    CUDA_CHECK(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, shared.bytes));
    // Rounded down: a block more than there is room for would begin when the others end.
    const int64_t of_row =
        std::max<int64_t>(1, int64_t{std::max(resident, 1)} * multiprocessors() / args.rows);
    const int64_t outputs = tiles.gated(args) ? kGroupRows / 2 : kGroupRows;
    const dim3 blocks(static_cast<unsigned>(args.rows),
                      static_cast<unsigned>(std::min(ceil_div(args.n, outputs), of_row)));
    pdl_launch(ctx, kernel, blocks, threads, shared.bytes, args, tiles, x, w,
               static_cast<int>(stride), shared.stages, early);
}

}  // namespace hark::cuda::whole_rows
