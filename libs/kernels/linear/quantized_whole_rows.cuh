// expert_linear and gated_experts of one row per tile on Hopper: whole rows of an expert, which are
// contiguous whatever their length is, come by the copy engine in one piece.
#pragma once

#include "kernels/cuda/hopper.cuh"
#include "kernels/experts/expert_tiles.cuh"
#include "kernels/linear/rows_of_tile.cuh"
#include "kernels/linear/small_m_quantized.cuh"

namespace hark::cuda::expert_row {

// Warps of a block that multiply, blocks of a multiprocessor, groups in flight per block, groups
// whose sums are kept.
constexpr int kMostSlices = 8, kBlocks = 2, kMostStages = 4, kGroupsOfSums = 2;

// Sums of groups, [kGroupsOfSums][slices][kPitch], and the barriers of their warps.
struct SumsOfGroups {
    float* sums;
    uint64_t *written, *read;  // [kGroupsOfSums]
};

// The finishing warp's part of each group of 16 rows of w: it waits for the slices' sums, starts
// the copy of a later group to where this one was, and writes y.
template <class StartNext>
__device__ void finish_groups(const SmallMArgs& args, const ExpertTiles::Tile& tile,
                              const SumsOfGroups& shared, int groups, const StartNext& start_next) {
    const bool gated = tile.of.is_gated;
    const int outputs = gated ? kGroupRows / 2 : kGroupRows;
    const int row = threadIdx.x % kGroupRows, n = static_cast<int>(args.n);
    hopper::Place<kGroupsOfSums> place;
#pragma unroll 1
    for (int group = blockIdx.y; group < groups; group += gridDim.y, place.advance()) {
        const int output = group * outputs + row % outputs;
        EpilogueParams params{};
        if (output < n)
            params = row < outputs ? tile.params(args, output) : tile.up_params(args, output);
        hopper::wait(shared.written[place.at], place.parity);
        start_next();
        const float* sums = shared.sums + place.at * args.slices * kPitch + row;
        float sum = 0;
#pragma unroll 8
        for (int s = 0; s < args.slices; ++s) sum += sums[s * kPitch];
        __syncwarp();
        if (threadIdx.x % 32 == 0) hopper::arrive(shared.read[place.at]);
        float value = apply_epilogue(args, params, sum, 0);
        const float up = __shfl_down_sync(0xffffffff, value, kGroupRows / 2);
        if (gated) value = gated_value(args, value, up);
        if (threadIdx.x % 32 < outputs && output < n)
            store_any(args.y, args.y_type, int64_t{tile.to(0)} * n + output, value);
    }
}

// y of one pair. Warp s sums slice s of each group of 16 rows of w; one more warp finishes them.
// early: the experts are ready_ids, so weights are requested before the wait. The gated kernel lets
// the next one start after its own wait, when they are ready.
template <class Rows>
__global__ void __launch_bounds__(32 * (kMostSlices + 1), kBlocks)
    expert_row_kernel(SmallMArgs args, ExpertTiles tiles, const typename Rows::X* x,
                      const uint8_t* w, int stride, int stages, bool early) {
#if HARK_HOPPER_CODE
    // [stages][kGroupRows * stride], x, SumsOfGroups, [stages] barriers
    extern __shared__ __align__(128) uint8_t memory[];
    if (!tiles.is_gated) pdl_trigger();
    const int group_bytes = kGroupRows * stride, k = static_cast<int>(args.k);
    const int outputs = tiles.is_gated ? kGroupRows / 2 : kGroupRows;
    const int n = static_cast<int>(args.n), groups = (n + outputs - 1) / outputs;
    const int slice = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
    const bool finishes = slice == args.slices;
    uint8_t* inputs = memory + stages * group_bytes;
    SumsOfGroups shared;
    shared.sums = reinterpret_cast<float*>(inputs + Rows::input_bytes(args.units));
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
    if (tiles.is_gated) pdl_trigger();
    const auto tile = tiles.tile(args, blockIdx.x, 1);
    int next_group = blockIdx.y, next_stage = 0;
    const auto start_next = [&] {
        if (copies && next_group < groups && tile.weights >= 0) {
            const auto bytes =
                static_cast<uint32_t>(min(outputs, n - next_group * outputs) * stride);
            const uint8_t* from = w + tile.weights + int64_t{next_group} * outputs * stride;
            uint8_t* to = memory + next_stage * group_bytes;
            hopper::arrive_expecting(ready[next_stage], tiles.is_gated ? 2 * bytes : bytes);
            hopper::copy_bytes(to, from, bytes, ready[next_stage]);
            // Row 8 is the first one's second factor, in a last group of fewer rows too.
            if (tiles.is_gated)
                hopper::copy_bytes(to + outputs * stride, from + tiles.up_bytes, bytes,
                                   ready[next_stage]);
        }
        next_group += gridDim.y;
        if (++next_stage == stages) next_stage = 0;
    };
    const typename Rows::X* row = x + int64_t{tile.from(0)} * k;
    if (finishes)
#pragma unroll 1
        for (int i = 0; i < stages; ++i) start_next();
    if (early) pdl_wait();
    if (!finishes) Rows::load_inputs(inputs, row, k, args.units, slice, args.slices);
    __syncthreads();
    if (tile.weights < 0) return write_nan(args, tile);
    if (finishes) return finish_groups(args, tile, shared, groups, start_next);
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

// Returns false, and does nothing, if Rows or the copy engine do not take such rows, or if it is
// not Hopper.
template <class Rows>
bool launch(Context& ctx, SmallMArgs args, const ExpertTiles& tiles, const typename Rows::X* x,
            const uint8_t* w, int64_t stride) {
    const auto kernel = expert_row_kernel<Rows>;
    const int64_t outputs = tiles.is_gated ? kGroupRows / 2 : kGroupRows;
    // All copies are of multiples of 16 bytes.
    const int64_t places = static_cast<int64_t>(reinterpret_cast<uintptr_t>(w)) | tiles.bytes |
                           tiles.up_bytes | outputs * stride | args.n % outputs * stride;
    if (args.k % Rows::kMultiple != 0 || !Rows::takes(stride) || places % 16 != 0 ||
        !has_hopper_code(reinterpret_cast<const void*>(kernel)))
        return false;
    args.units = static_cast<int>(ceil_div(args.k, Rows::kColumns));
    // As few as give the longest slice the same length.
    args.slices =
        static_cast<int>(ceil_div(args.units, ceil_div(args.units, int64_t{kMostSlices})));
    const auto shared_bytes = [&](int stages) {
        return static_cast<size_t>(stages * kGroupRows * stride + Rows::input_bytes(args.units)) +
               kGroupsOfSums * static_cast<size_t>(args.slices * kPitch) * sizeof(float) +
               static_cast<size_t>(2 * kGroupsOfSums + stages) * sizeof(uint64_t);
    };
    // A block has the multiprocessor to itself rather than less than two tiles.
    const size_t limit = static_cast<size_t>(shared_limit()), share = limit / kBlocks - 1024;
    int stages = kMostStages;
    while (stages > 2 && shared_bytes(stages) > share) --stages;
    const size_t shared = shared_bytes(stages);
    if (shared > limit) return false;
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_limit()));
    const int threads = 32 * (args.slices + 1);
    int resident = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, shared));
    // Rounded down: a block more than there is room for would begin when the others end.
    const int64_t of_row =
        std::max<int64_t>(1, int64_t{std::max(resident, 1)} * multiprocessors() / args.rows);
    const dim3 blocks(static_cast<unsigned>(args.rows),
                      static_cast<unsigned>(std::min(ceil_div(args.n, outputs), of_row)));
    const bool early = !tiles.is_gated && handles_of(ctx).ready_ids == tiles.chosen;
    pdl_launch(ctx, kernel, blocks, threads, shared, args, tiles, x, w, static_cast<int>(stride),
               stages, early);
    if (tiles.is_gated) handles_of(ctx).ready_ids = tiles.chosen;
    return true;
}

}  // namespace hark::cuda::expert_row
