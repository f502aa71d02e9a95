// linear of one row and quantised weights on Hopper: divided as in small_m_quantized.cuh, but one
// instruction of one lane has the copy engine bring a chunk of 16 rows (quantized_row_chunks.cuh).
#pragma once

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/linear/quantized_row_chunks.cuh"
#include "kernels/linear/small_m_quantized.cuh"
#include "kernels/norm/rms_norm.cuh"

namespace hark::cuda::quantized_row {

constexpr int kMostSlices = 8, kBlocks = 2;  // warps of a block; blocks of a multiprocessor
// Groups after which a block meets; sums of as many again may be written meanwhile.
constexpr int kTogether = 2, kGroupsOfSums = 2 * kTogether;

constexpr int kNormPacks = 2;  // of a thread, if x is normed
// Chunks of a warp that are requested before the row that is normed. What is requested first is
// brought first (docs/kernels/log/decode_step.md).
constexpr int kEarlyChunks = 1;

template <class Block>
constexpr int kChunkBytes = RowOfChunks<Block>::kColumns / Block::kValues* Block::kBytes;
template <class Block>
constexpr int kStages = RowOfChunks<Block>::kStages;
template <class Block>
constexpr int kStageBytes = kGroupRows* RowOfChunks<Block>::kPitch;

// [slices][stages][kStageBytes], if normed x, [kGroupsOfSums][slices][kPitch] floats,
// [slices][stages] barriers
template <class Block>
constexpr int shared_bytes(int slices, int64_t normed) {
    return slices * (kStages<Block> * (kStageBytes<Block> + static_cast<int>(sizeof(uint64_t))) +
                     kGroupsOfSums * kPitch * static_cast<int>(sizeof(float))) +
           static_cast<int>(normed) * static_cast<int>(sizeof(__half));
}

// Each half of a warp adds up the slices of a group, and if it stores writes the outputs from the
// first one on. Rows 8 to 15 of a gated product's group are the second factors of its rows 0 to 7.
__device__ inline void write_outputs(const SmallMArgs& args, const float* sums, int first,
                                     int outputs, float residual, bool stores) {
    const int row = threadIdx.x % kGroupRows, n = first + row % outputs;
    const bool is_up = row >= outputs;
    const EpilogueParams params = epilogue_params(args, is_up ? args.up + n : int64_t{n});
    float sum = 0;
#pragma unroll 8
    for (int s = 0; s < args.slices; ++s) sum += sums[s * kPitch + row];
    store_row(args, params, sum, residual, n, stores && !is_up);
}

// y for one group of 16 rows of w after the other. Warp s sums slice s, args.units chunks are
// divided among args.slices. The block meets after two groups; then one warp, another one each
// time, finishes them. Normed: of rms_norm(x), which every block computes.
template <class Block, bool Normed>
__global__ void __launch_bounds__(32 * kMostSlices, kBlocks)
    quantized_row_kernel(SmallMArgs args, const __half* x, const __grid_constant__ CUtensorMap w) {
#if HARK_HOPPER_CODE
    using Rows = RowOfChunks<Block>;
    extern __shared__ __align__(128) uint8_t chunks[];
    pdl_trigger();
    const Groups groups(args, 1, args.up > 0, args.up);
    const int slice = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, step = gridDim.x;
    const int begin = args.slice_begin(slice), end = args.slice_begin(slice + 1);
    uint8_t* stages = chunks + slice * kStages<Block> * kStageBytes<Block>;
    auto* row =
        reinterpret_cast<__half*>(chunks + args.slices * kStages<Block> * kStageBytes<Block>);
    auto* all_sums = reinterpret_cast<float*>(row + (Normed ? args.k : 0));
    auto* ready = reinterpret_cast<uint64_t*>(all_sums + kGroupsOfSums * args.slices * kPitch) +
                  slice * kStages<Block>;
    if (lane == 0) {
        hopper::prefetch_map(w);
        for (int i = 0; i < kStages<Block>; ++i) hopper::init(ready[i], 1);
        hopper::fence_init();
    }
    int next_group = blockIdx.x, next_chunk = begin;
    // A copy begins at a multiple of 16 bytes.
    const auto start_next = [&](int stage) {
        if (lane == 0 && next_group < groups.count()) {
            hopper::arrive_expecting(ready[stage], kStageBytes<Block>);
            hopper::copy_box(stages + stage * kStageBytes<Block>, w, ready[stage],
                             next_chunk * kChunkBytes<Block> / 16 * 8, next_group * groups.outputs,
                             0);
        }
        if (++next_chunk < end) return;
        next_chunk = begin;
        next_group += step;
    };
    const auto start_chunks = [&](int first, int last) {
#pragma unroll 1
        for (int i = first; i < last; ++i) start_next(i);
        __syncwarp();
    };
    if constexpr (Normed) {
        const int channels = static_cast<int>(args.k);
        const RmsWeights<kNormPacks> weights(args.norm_weight, channels);
        static_assert(kEarlyChunks <= kStages<Block>);
        start_chunks(0, kEarlyChunks);
        pdl_wait();
        const RmsInputs<__half, kNormPacks> inputs_of_row(x, channels);
        start_chunks(kEarlyChunks, kStages<Block>);
        rms_norm_row(row, inputs_of_row, channels, args.norm_eps, weights);
        __syncthreads();
    } else {
        start_chunks(0, kStages<Block>);
        pdl_wait();
    }
    const __half* inputs = Normed ? row : x;
    int stage = 0, round = 0;
    uint32_t parity = 0;
#pragma unroll 1
    for (int group = blockIdx.x; group < groups.count(); group += step, ++round) {
        const bool is_first = round % kTogether == 0;
        const bool meets = !is_first || group + step >= groups.count();
        // A warp finishes one or two groups, half of it each.
        const int of_warp = (slice + round / kTogether) % args.slices * 2;
        const int back = of_warp + lane / kGroupRows;
        const bool finishes = meets && of_warp < 2, stores = finishes && back < (is_first ? 1 : 2);
        const int output = stores ? (group - back * step) * groups.outputs : 0;
        const float residual = stores && lane % kGroupRows < groups.outputs
                                   ? residual_at(args, output + lane % kGroupRows)
                                   : 0.0f;
        Rows product;
#pragma unroll 1
        for (int chunk = begin; chunk < end; ++chunk) {
            hopper::wait(ready[stage], parity);
            const uint8_t* low = stages + stage * kStageBytes<Block> + g * Rows::kPitch +
                                 chunk * kChunkBytes<Block> % 16;
            product.multiply(low, low + 8 * Rows::kPitch, inputs + chunk * Rows::kColumns);
            __syncwarp();
            start_next(stage);
            if (++stage == kStages<Block>) stage = 0, parity ^= 1;
        }
        const auto sums_of = [&](int i) {
            return all_sums + i % kGroupsOfSums * args.slices * kPitch;
        };
        for (int half = 0; half < 2; ++half) {
            float sum = product.sum(half);
            sum += __shfl_xor_sync(0xffffffff, sum, 1);
            sum += __shfl_xor_sync(0xffffffff, sum, 2);
            if (t == 0) sums_of(round)[slice * kPitch + 8 * half + g] = sum;
        }
        if (!meets) continue;
        __syncthreads();
        if (finishes)
            write_outputs(args, sums_of(stores ? round - back : round), output, groups.outputs,
                          residual, stores);
    }
#endif
}

// Of args.k columns: as few warps as give the longest slice the same length.
template <class Block>
void divide(SmallMArgs& args) {
    args.units = static_cast<int>(args.k / RowOfChunks<Block>::kColumns);
    args.slices =
        static_cast<int>(ceil_div(args.units, ceil_div(args.units, int64_t{kMostSlices})));
}

// Whether it is Hopper, the copy engine can bring such weights and their last group of rows is
// whole.
template <class Block>
bool takes(const SmallMArgs& args, const void* w, int64_t stride) {
    const int outputs = args.up > 0 ? kGroupRows / 2 : kGroupRows;
    return args.n % outputs == 0 && stride % 16 == 0 && reinterpret_cast<uintptr_t>(w) % 16 == 0 &&
           has_hopper_code(reinterpret_cast<const void*>(quantized_row_kernel<Block, false>));
}

// Whether it also computes x's rms_norm.
template <class Block>
bool norms(SmallMArgs args, const Norm& norm) {
    divide<Block>(args);
    return in_packs(args.k, {norm.weight.data}) &&
           args.k <= kPack * std::min(kNormPacks * 32 * args.slices, kMostRmsThreads);
}

// If takes(); with args.norm_weight only if norms().
template <class Block>
void launch(Context& ctx, SmallMArgs args, const __half* x, const uint8_t* w, int64_t stride) {
    const bool gated = args.up > 0, normed = args.norm_weight;
    const int outputs = gated ? kGroupRows / 2 : kGroupRows;
    const auto kernel =
        normed ? quantized_row_kernel<Block, true> : quantized_row_kernel<Block, false>;
    divide<Block>(args);
    const int shared = shared_bytes<Block>(args.slices, normed ? args.k : 0);
    allow_shared(reinterpret_cast<const void*>(kernel), shared);
    const auto row = static_cast<uint64_t>(stride);
    const CUtensorMap map =
        plain_map(w, {row / 2, static_cast<uint64_t>(args.n), 2},
                  {row, row * static_cast<uint64_t>(gated ? args.up : kGroupRows / 2)},
                  {static_cast<uint32_t>(RowOfChunks<Block>::kPitch) / 2, kGroupRows / 2, 2});
    const auto blocks = static_cast<unsigned>(
        std::min<int64_t>(args.n / outputs, int64_t{kBlocks} * multiprocessors()));
    pdl_launch(ctx, kernel, blocks, 32 * args.slices, static_cast<size_t>(shared), args, x, map);
}

}  // namespace hark::cuda::quantized_row
