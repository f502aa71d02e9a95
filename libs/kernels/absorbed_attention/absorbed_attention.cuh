// absorbed_attention on the GPU, in three kernels:
//   fold_queries       q'[row][h] = q_h Wk_h, C columns a head, rounded to q's type;
//   attend_folded      a block for one row and a split of its keys: the softmax of q' X^T over
//                      these keys, for all heads or 8 of them, times X;
//   unfold_values      adds the splits up, out_h = (their sum) Wv_h^T + bv_h.
// How a sum is cut depends on C and the GPU alone: the bits of a row's result are the same in every
// grid.
#pragma once

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/cuda/mma.cuh"

namespace hark::cuda {

constexpr int kFoldedSplit = 384;         // keys of a split, or twice as many
constexpr int kMostFoldedSplits = 4;      // can_absorb()'s 1536 frames
constexpr int kFoldedHead = 64;           // channels of a head
constexpr int kFoldedWarps = 8;           // of a block; each owns C / 8 columns
constexpr int64_t kMostFoldedRows = 256;  // of a launch: scratch is 0.4 MB a row of 1280 columns

struct FoldedArgs {
    void* out;
    const void *q, *encoder_out, *kv;
    const float *scales, *bias;  // of kv's rows; scales: int8 only
    const int *query_start, *slot, *length;
    Dtype type, kv_type;
    int sequences, slots, frames, c, heads;
    int first_row, rows;  // of this launch, packed rows
    bool one_each;        // every sequence has one row
    bool kv_ready;        // X may be read before the kernels in front have ended
    int split_keys, splits;
    float scale_log2;  // scale * log2(e): the softmax runs on powers of two
    // Scratch. 16-bit values stand as the matrix units take them, 16 columns (block) at a time:
    // lane 4 g + t of a fragment has the columns 2t, 2t + 1, 2t + 8 and 2t + 9 of its block.
    uint2* folded;  // (rows, C / 16, tiles of 8 heads, 32 lanes): head g of the tile
    uint2* parts;   // (rows, splits, heads, C / 16, 4): a split's result, divided by its sum
    float2* tops;   // (rows, heads, splits): a split's maximum and sum

    __host__ __device__ int head_tiles() const { return (heads + 7) / 8; }
    __host__ __device__ int blocks() const { return c / 16; }
};

void fold_queries(Context& ctx, const FoldedArgs& args);
void attend_folded(Context& ctx, const FoldedArgs& args);
void unfold_values(Context& ctx, const FoldedArgs& args);

}  // namespace hark::cuda
