// The pairs of a mixture's rows and experts as tiles of one expert each, for the kernels of few
// rows: a tile reads its expert's weights once.
#pragma once

#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {

constexpr int kMostTiledExperts = 1023;

// Pairs [first, first + rows) in the order by expert.
struct PairTile {
    int expert, first, rows;
};

// Tiles of pairs of one expert. Without an order each pair is a tile.
struct ExpertTiles {
    static constexpr bool kChosen = true;
    const int *chosen, *order;
    const PairTile* tiles;
    int experts, pairs_per_row;
    int begin, end;  // the experts whose weights are there; other tiles are empty
    bool is_gated;
    int64_t bytes, up_bytes;      // from one expert to the next; if gated, from gate to up
    const float *bias, *up_bias;  // of all experts, or null
    const float* scales;          // of all experts' rows, or null

    struct Tile {
        const ExpertTiles& of;
        int expert, first, rows;
        int64_t weights;  // below 0: there is no such expert

        __device__ int to(int i) const { return of.order ? of.order[first + i] : first + i; }
        __device__ int from(int i) const { return to(i) / of.pairs_per_row; }
        __device__ EpilogueParams params(const SmallMArgs& args, int n) const {
            return of.at(args, of.bias, expert, n);
        }
        __device__ EpilogueParams up_params(const SmallMArgs& args, int n) const {
            return of.at(args, of.up_bias, expert, n);
        }
    };
    __device__ Tile tile(const SmallMArgs&, int i, int) const {
        const PairTile own = order ? tiles[i] : PairTile{__ldcg(chosen + i), i, 1};
        const bool is_expert = 0 <= own.expert && own.expert < experts;
        const bool there = is_expert ? begin <= own.expert && own.expert < end : begin == 0;
        return {*this, own.expert, own.first, there ? own.rows : 0,
                is_expert ? (own.expert - begin) * bytes : -1};
    }
    __host__ __device__ bool gated(const SmallMArgs&) const { return is_gated; }
    __device__ int64_t up(const SmallMArgs&, int64_t) const { return up_bytes; }
    __device__ EpilogueParams at(const SmallMArgs& args, const float* biases, int expert,
                                 int n) const {
        const int64_t i = expert * args.n + n;
        const bool there = n < args.n;
        return {there && scales ? scales[i] : 1.0f, there && biases ? biases[i] : 0.0f};
    }
};

// The tiles of y's pairs, without an order.
ExpertTiles tiles_of(const Tensor& y, const Tensor& x, const ExpertMatrices& w,
                     const Tensor& chosen);

// Sorts the pairs into tiles of at most `most`, in memory of ctx.arena, and returns an upper bound
// of the number of tiles. Of few pairs, which have few experts in common, each stays a tile.
int64_t sort_pairs(Context& ctx, ExpertTiles& tiles, int64_t pairs, int most);

// expert_linear or gated_experts on the matrix units. Each returns false, and does nothing, for
// types that it does not take. Except for converted_experts a row's bits do not depend on others.

// Quantised weights (quantized_experts.cu): x is f16, or bf16 with mxfp4, with rows aligned to 16
// bytes. up: the second factors' experts, or none; then `by` is not read.
bool quantized_experts(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& w,
                       const ExpertMatrices* up, Tensor chosen, const Gating& by);

// Quantised weights of many pairs, converted to x's 16-bit type first (expert_products.cu). Not for
// batch-invariant contexts.
bool converts_experts(Context& ctx, const Tensor& y, const Tensor& x, const ExpertMatrices& w);
bool converted_experts(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& w, Tensor chosen);

// Weights that tiled_kernel takes (expert_products.cu): of x's 16-bit type, int8 or fp8.
bool expert_products(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& w, Tensor chosen);

}  // namespace hark::cuda
