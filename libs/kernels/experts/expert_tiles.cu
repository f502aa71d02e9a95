#include "kernels/experts/expert_tiles.cuh"

namespace hark::cuda {
namespace {

constexpr int kSortThreads = 1024;
static_assert(kMostTiledExperts < kSortThreads);  // one more has the pairs out of range

// Inclusive sums over the block; `shared` has a value per thread.
__device__ int2 sum_up(int2 x, int2* shared) {
    for (int step = 1; step < kSortThreads; step *= 2) {
        shared[threadIdx.x] = x;
        __syncthreads();
        if (static_cast<int>(threadIdx.x) >= step) {
            const int2 before = shared[threadIdx.x - step];
            x = make_int2(x.x + before.x, x.y + before.y);
        }
        __syncthreads();
    }
    return x;
}

// order (P) = the pairs by expert, in any order within one; tiles: up to `most` pairs of an expert
// each, then empty ones. One block; thread e sums up expert e.
__global__ void __launch_bounds__(kSortThreads)
    sort_kernel(int* order, PairTile* tiles, const int* chosen, int pairs, int experts, int most,
                int tile_count) {
    __shared__ int
        next[kSortThreads];  // the count of each expert's pairs, then the next one's place
    __shared__ int2 sums[kSortThreads];
    pdl_trigger();
    const int e = threadIdx.x;
    next[e] = 0;
    pdl_wait();
    __syncthreads();
    const auto expert_of = [&](int pair) {
        const int expert = chosen[pair];
        return expert < 0 || expert >= experts ? experts : expert;
    };
    for (int p = e; p < pairs; p += kSortThreads) atomicAdd(&next[expert_of(p)], 1);
    __syncthreads();
    const int count = next[e], own_tiles = (count + most - 1) / most;
    const int2 end = sum_up(make_int2(count, own_tiles), sums);
    const int first = end.x - count;
    next[e] = first;
    for (int i = 0; i < own_tiles; ++i)
        tiles[end.y - own_tiles + i] = {e, first + i * most, min(most, count - i * most)};
    if (e == kSortThreads - 1)
        for (int i = end.y; i < tile_count; ++i) tiles[i] = {};
    __syncthreads();
    for (int p = e; p < pairs; p += kSortThreads) order[atomicAdd(&next[expert_of(p)], 1)] = p;
}

}  // namespace

ExpertTiles tiles_of(const Tensor& y, const Tensor& x, const ExpertMatrices& w,
                     const Tensor& chosen) {
    const Matrix& first = w.each.front();
    ExpertTiles tiles{};
    tiles.chosen = chosen.as<int32_t>();
    tiles.experts = static_cast<int>(w.each.size());
    tiles.end = tiles.experts;
    tiles.pairs_per_row = static_cast<int>(y.dim(0) / x.dim(0));
    tiles.bytes = static_cast<int64_t>(first.values.bytes());
    tiles.bias = w.bias ? w.bias.as<float>() : nullptr;
    tiles.scales = first.scales ? first.scales.as<float>() : nullptr;
    return tiles;
}

int64_t sort_pairs(Context& ctx, ExpertTiles& tiles, int64_t pairs, int most) {
    constexpr int64_t kFewPairs = 16;
    if (pairs <= kFewPairs) return pairs;
    const int64_t count = std::min(pairs, pairs / most + tiles.experts + 1);
    int* order = ctx.arena.tensor(Dtype::i32, {pairs}).as<int>();
    auto* list = static_cast<PairTile*>(ctx.arena.tensor(Dtype::i32, {count, 3}).data);
    pdl_launch(ctx, sort_kernel, 1, kSortThreads, 0, order, list, tiles.chosen,
               static_cast<int>(pairs), tiles.experts, most, static_cast<int>(count));
    tiles.order = order;
    tiles.tiles = list;
    return count;
}

}  // namespace hark::cuda
