// absorbed_attention on the GPU, in three kernels:
//   absorb_queries: q'[row][h] = q_h Wk_h, C columns per head, rounded to q's type;
//   attend_absorbed: softmax(q' X^T) X. A block computes one row and one split of its keys, for all
//     heads or 8 of them;
//   expand_values: adds the splits, then out_h = sum Wv_h^T + bv_h.
// Each sum is cut at places that depend on C and the GPU only, so a row's bits are the same in
// every grid.
#pragma once

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/cuda/mma.cuh"

namespace hark::cuda {

constexpr int kAbsorbedSplit = 384;         // keys per split, or twice as many
constexpr int kMostAbsorbedSplits = 4;      // can_absorb()'s 1536 frames
constexpr int kAbsorbedHead = 64;           // channels of a head
constexpr int kAbsorbedWarps = 8;           // per block; each has C / 8 columns
constexpr int kMostNarrowColumns = 512;     // of attend_narrow()
constexpr int64_t kMostAbsorbedRows = 256;  // per launch: scratch is 0.4 MB per row of 1280 columns

struct AbsorbedArgs {
    void* out;
    const void *q, *encoder_out, *kv;
    const float *scales, *bias;  // of kv's rows; scales: int8 and fp8
    const int *query_start, *slot, *length;
    Dtype type, kv_type;
    int sequences, slots, frames, c, heads;
    int first_row, rows;  // rows of this launch, packed
    bool one_each;        // every sequence has one row
    bool kv_ready;        // X may be read before the previous kernels end
    int split_keys, splits;
    float scale_log2;  // scale * log2(e): the softmax runs on powers of two
    // Scratch. 16-bit values are stored in the order of the matrix units' fragments, per block of
    // 16 columns: lane 4 g + t has the columns 2t, 2t + 1, 2t + 8 and 2t + 9 of its block.
    uint2* absorbed;      // (rows, C / 16, tiles of 8 heads, 32 lanes): head g of the tile
    uint2* parts;         // (rows, splits, heads, C / 16, 4): a split's result, divided by its sum
    float2* row_max_sum;  // (rows, heads, splits): maximum and sum of a split

    __host__ __device__ int head_tiles() const { return (heads + 7) / 8; }
    __host__ __device__ int blocks() const { return c / 16; }
};

void absorb_queries(Context& ctx, const AbsorbedArgs& args);
void attend_absorbed(Context& ctx, const AbsorbedArgs& args);
// attend_absorbed() for few columns on Hopper. Returns false, and does nothing, for others.
bool attend_narrow(Context& ctx, const AbsorbedArgs& args);
void expand_values(Context& ctx, const AbsorbedArgs& args);

}  // namespace hark::cuda
