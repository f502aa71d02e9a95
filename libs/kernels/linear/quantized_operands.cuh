// Chunks of quantised rows as the first operand of wgmma: values in f16, in registers, whose order
// is that of x in shared memory.
#pragma once

#include "kernels/cuda/hopper.cuh"
#include "kernels/linear/quantized_chunk.cuh"

namespace hark::cuda {

// ScalarLane's functions for the values j, j + 1, j + 8 and j + 9 of a step: j % 16 is even and
// below 8.
template <int Align>
struct StepLane : FourValues<StepLane<Align>> {
    static __device__ Quad bytes(const uint8_t* from) {
        if constexpr (Align >= 2) {
            const auto* halves = reinterpret_cast<const uint16_t*>(from);
            return {__byte_perm(halves[0], halves[4], 0x5410)};
        } else {
            return {__byte_perm(from[0] | from[1] << 8, from[8] | from[9] << 8, 0x5410)};
        }
    }
    static __device__ Quad fifth_bit(const uint8_t* from, int g, int j) {
        const uint32_t bits = reinterpret_cast<const uint16_t*>(from)[g] >> j;
        // Bits 0, 1, 8 and 9 to bits 4, 12, 20 and 28.
        return Quad{((bits & 3) | (bits & 0x300) << 8) * 0x0810} & 16;
    }
};

// Half the number of quants, of blocks with minima; their scales take less than a bit per value.
template <class Block>
inline constexpr int kMiddle =
    Block::kHasMin ? 1 << ((Block::kBytes - 4) * 8 / Block::kValues - 1) : 0;
static_assert(kMiddle<BlockQ2K> == 2 && kMiddle<BlockQ4K> == 8 && kMiddle<BlockQ5_1> == 16);

// Scales and minima of a chunk's values in one row, in f16. A minimum becomes the value of the
// middle quant, which is smaller, so that rounding it loses less. A lane computes some of them, as
// in ChunkScales.
template <class Block>
class HalfScales {
  public:
    // columns: of the chunk that exist; the others get zeros.
    __device__ HalfScales(const uint8_t* chunk, int columns) : chunk_(chunk), columns_(columns) {
        if constexpr (kDivided)
            for (int i = 0; i < kMine; ++i)
                mine_[i] = pair(chunk, (4 * i + threadIdx.x % 4) * Block::kShared / Block::kGroup);
    }
    // Of the values from `at` of the chunk on. All lanes call this.
    __device__ __half2 of(int at) const {
        if constexpr (kDivided) return of_lane(mine_, at / Block::kShared);
        if (at >= columns_) return {};
        return pair(chunk_ + at / Block::kValues * Block::kBytes, 0);
    }

  private:
    static constexpr bool kDivided = Block::kValues > Block::kShared;
    static constexpr int kMine = kDivided ? Block::kValues / Block::kShared / 4 : 1;

    static __device__ __half2 pair(const uint8_t* block, int g) {
        const float scale = Block::scale(block, g);
        return __floats2half2_rn(scale, fmaf(kMiddle<Block>, scale, Block::min(block, g)));
    }
    const uint8_t* chunk_;
    int columns_;
    __half2 mine_[kMine] = {};
};

// Columns [at, at + 16) of a chunk's row: this lane's are 2t, 2t + 1 and 2t + 8, 2t + 9 of them.
template <class Block>
__device__ void load_values(const uint8_t* chunk, int at, __half2 scales, uint32_t (&values)[2]) {
    const int in_block = at % Block::kValues;
    const int j = in_block % Block::kGroup + 2 * static_cast<int>(threadIdx.x % 4);
    const Quad quants = Block::template quant<StepLane<kBlockAlign<Block>>>(
        chunk + at / Block::kValues * Block::kBytes, in_block / Block::kGroup, j);
    if constexpr (Block::kHasMin)
        bytes_to_pairs(quants.word, 0x00010001 * (0x6400 + kMiddle<Block>), values);
    else
        int8_to_pairs(quants.word, values, __half());
#pragma unroll
    for (uint32_t& value : values) {
        const auto pair = reinterpret_cast<const __half2&>(value);
        const __half2 scaled = Block::kHasMin
                                   ? __hfma2(pair, __low2half2(scales), __high2half2(scales))
                                   : __hmul2(pair, __low2half2(scales));
        value = reinterpret_cast<const uint32_t&>(scaled);
    }
}

}  // namespace hark::cuda
