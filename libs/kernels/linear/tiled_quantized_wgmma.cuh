// Products of quantised weights and rows of x on Hopper: tiles of 256 outputs and up to 128 rows.
// Weights become f16 in registers, once for all rows of a tile, as the first operand of wgmma; the
// second one is x in shared memory. A warp multiplies 16 rows of w, which it copies as stored; one
// thread copies x for all warps. A block takes as many chunks of the tiles as the others, and
// quantized_parts.cuh adds the parts.
#pragma once

#include <cuda_pipeline.h>

#include "kernels/linear/quantized_operands.cuh"
#include "kernels/linear/quantized_parts.cuh"

namespace hark::cuda::quantized_wgmma {

using namespace hopper;

inline constexpr int kWarps = 16, kThreads = 32 * kWarps + 128;
inline constexpr int kRegisters = 112, kCopyRegisters = 24;  // of the kernel's 96 per thread
inline constexpr int kOutputs = kGroupRows * kWarps;
inline constexpr int kDepth = 64;  // columns of x per stage: the swizzle's 128 bytes
inline constexpr int kDepthSteps = kDepth / 16;
inline constexpr int kChunkStages = 2;
inline constexpr int kSharedBytes = 232448 - 1024;  // what a block may have, less what aligns it

// Chunks of w, one of which is multiplied, and as many stages of x as there is room for: a stage
// lasts for 100 to 200 ns.
template <class Block, int Rows>
struct Memory {
    static constexpr int kWeights = kChunkStages * kWarps * ChunkShape<Block>::kStage;
    static constexpr int kStages =
        std::min(12, (kSharedBytes - kWeights) / (Rows * kDepth * 2 + 16));

    __half x[kStages][Rows][kDepth];
    __align__(16) uint8_t weights[kChunkStages][kWarps][ChunkShape<Block>::kStage];
    uint64_t full[kStages], empty[kStages];
};

struct Product {
    TileParts division;
    int rows, n, k;
    float* parts;
    const uint8_t* w;
    int64_t stride;  // of w, in bytes

    // The first output and the first row of a tile.
    __device__ int output(int tile) const { return tile / division.row_tiles * kOutputs; }
    __device__ int row(int tile) const { return tile % division.row_tiles * division.rows; }
};

// The units of a block: chunks of its tiles.
struct Units {
    int tile, chunk, left;

    __device__ explicit Units(const TileParts& division) {
        const int first = static_cast<int>(blockIdx.x) * division.per_block;
        tile = first / division.chunks;
        chunk = first % division.chunks;
        left = min(division.per_block, division.units() - first);
    }
    // The number of units of the same tile.
    __device__ int in_tile(int chunks) const { return min(left, chunks - chunk); }
    __device__ void next_tile(int chunks) {
        left -= in_tile(chunks);
        chunk = 0;
        ++tile;
    }
};

// One thread: starts the copies of x.
template <class Block, int Rows>
__device__ void copy_x(Memory<Block, Rows>& shared, const Product& args, const CUtensorMap& map) {
    constexpr int kColumns = ChunkShape<Block>::kColumns;
    const int chunks = args.division.chunks;
    Place<Memory<Block, Rows>::kStages> place;
    for (Units units(args.division); units.left > 0; units.next_tile(chunks)) {
        const int row = args.row(units.tile), end = units.chunk + units.in_tile(chunks);
        for (int k = units.chunk * kColumns; k < end * kColumns; k += kDepth, place.advance()) {
            wait(shared.empty[place.at], place.parity ^ 1);
            arrive_expecting(shared.full[place.at], sizeof shared.x[0]);
            copy_box(shared.x[place.at], map, shared.full[place.at], k, row);
        }
    }
}

// Copies a warp's rows of w, a chunk at a time.
template <class Block>
struct ChunkCopy {
    using Shape = ChunkShape<Block>;
    Units units;
    const uint8_t* from = nullptr;
    int in_tile = 0, output = 0;

    __device__ explicit ChunkCopy(const Product& args, int warp) : units(args.division) {
        begin_tile(args, warp);
    }
    __device__ void begin_tile(const Product& args, int warp) {
        if (units.left <= 0) return;
        in_tile = units.in_tile(args.division.chunks);
        output = args.output(units.tile) + warp * kGroupRows;
        from = args.w + output * args.stride + units.chunk * Shape::kBytes;
    }
    // Starts the next chunk's copy, or none after the last one.
    __device__ void start(const Product& args, int warp, uint8_t* to) {
        if (units.left > 0) {
            start_copy<Shape>(shared_address(to), from, args.stride, 8 * args.stride,
                              {args.n - output, args.n - output - 8}, bytes_left(args));
            from += Shape::kBytes;
            ++units.chunk, --units.left;
            if (--in_tile == 0) {
                units.chunk = 0;
                ++units.tile;
                begin_tile(args, warp);
            }
        }
        __pipeline_commit();
    }
    __device__ int bytes_left(const Product& args) const {
        return min(static_cast<int>(args.stride) - units.chunk * Shape::kBytes, Shape::kBytes);
    }
};

// Writes a warp's sums of a tile to its part.
template <int Rows>
__device__ void write_part(const Product& args, int tile, int warp, const float (&sums)[Rows / 2]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int part = static_cast<int>(blockIdx.x) - args.division.first_block(tile);
    const int first_row = args.row(tile) + 2 * t;
    const int first_n = args.output(tile) + warp * kGroupRows + g;
    const int rows = args.rows - first_row;
    float* const to = args.parts + (int64_t{part} * args.rows + first_row) * args.n;
#pragma unroll
    for (int i = 0; i < Rows / 2; ++i) {
        const int row = i / 4 * 8 + i % 2, n = first_n + i % 4 / 2 * 8;
        if (row < rows && n < args.n) to[int64_t{row} * args.n + n] = sums[i];
    }
}

// Columns [at, at + kDepth) of a chunk of 16 rows, for kDepthSteps products.
template <class Block>
__device__ void load_operands(uint32_t (&a)[kDepthSteps][4], const uint8_t* low,
                              const uint8_t* high, const HalfScales<Block>& low_scales,
                              const HalfScales<Block>& high_scales, int at) {
#pragma unroll
    for (int step = 0; step < kDepthSteps; ++step) {
        const int column = at + step * 16;
        uint32_t of_low[2], of_high[2];
        load_values<Block>(low, column, low_scales.of(column), of_low);
        load_values<Block>(high, column, high_scales.of(column), of_high);
        a[step][0] = of_low[0], a[step][1] = of_high[0];
        a[step][2] = of_low[1], a[step][3] = of_high[1];
    }
}

}  // namespace hark::cuda::quantized_wgmma
