#include "kernels/elementwise/rows.cuh"
#include "kernels/experts/expert_tiles.cuh"
#include "kernels/linear/gemm.cuh"
#include "kernels/linear/small_m_mma_tiled.cuh"

namespace hark::cuda {
namespace {

// With quantised weights: from this number of pairs per expert on, conversion takes less time than
// reading the blocks for each tile.
constexpr int64_t kManyPairs = 48;

// Calls use(x's type, the weights' type, the tiling for that many pairs per expert).
template <class Use>
void with_tiling(Dtype x, Dtype w, int64_t pairs_per_expert, const Use& use) {
    with_small_m_types(x, w, [&](auto x_value, auto w_value) {
        using T = Tilings<decltype(w_value)>;
        if (pairs_per_expert < 32) return use(x_value, w_value, typename T::Small());
        if (pairs_per_expert < 256) return use(x_value, w_value, typename T::Middle());
        use(x_value, w_value, typename T::Large());
    });
}

// tiled_kernel's offsets between a tile's rows are 32 bits.
bool has_near_rows(const Tensor& x) { return x.size() <= INT32_MAX; }

}  // namespace

bool converts_experts(Context& ctx, const Tensor& y, const Tensor& x, const ExpertMatrices& w) {
    const auto experts = std::ssize(w.each);
    return !ctx.batch_invariant && is_quantized(w.each.front().values.dtype) &&
           is_16_bit(x.dtype) && in_packs(x.dim(1), {x.data}) && has_near_rows(x) &&
           experts <= kMostTiledExperts && y.dim(0) >= kManyPairs * experts;
}

bool converted_experts(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& w, Tensor chosen) {
    if (!converts_experts(ctx, y, x, w)) return false;
    const Arena::Scope scope(ctx.arena);
    const Tensor& first = w.each.front().values;
    const int64_t experts = std::ssize(w.each), n = first.dim(0), k = first.dim(1);
    const int64_t step = std::clamp<int64_t>(kConvertedElements / (n * k), 1, experts);
    const Tensor converted = ctx.arena.tensor(x.dtype, {step * n, k});
    SmallMArgs args(y, x, {converted.slice(0, n)}, {});
    args.rows = y.dim(0);
    ExpertTiles tiles = tiles_of(y, x, w, chosen);
    tiles.bytes = static_cast<int64_t>(converted.slice(0, n).bytes());
    with_tiling(
        x.dtype, x.dtype, args.rows / experts, [&](auto x_value, auto w_value, auto tiling) {
            using X = decltype(x_value);
            using W = decltype(w_value);
            using T = decltype(tiling);
            const int64_t count = sort_pairs(ctx, tiles, args.rows, T::kRows);
            for (int64_t begin = 0; begin < experts; begin += step) {
                const int64_t end = std::min(experts, begin + step), rows = (end - begin) * n;
                const Tensor blocks(w.each[static_cast<size_t>(begin)].values.data, first.dtype,
                                    {rows, k}, Device::cuda);
                dequantize(ctx, converted.slice(0, rows), blocks);
                tiles.begin = static_cast<int>(begin);
                tiles.end = static_cast<int>(end);
                launch_tiled<T>(ctx, args, tiles, count, static_cast<const X*>(x.data),
                                static_cast<const W*>(converted.data));
            }
        });
    return true;
}

bool expert_products(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& w, Tensor chosen) {
    const Matrix& first = w.each.front();
    const auto experts = std::ssize(w.each);
    if (!has_small_m_product(x, first) || experts > kMostTiledExperts || !has_near_rows(x))
        return false;
    const Arena::Scope scope(ctx.arena);
    SmallMArgs args(y, x, first, {});
    args.rows = y.dim(0);
    ExpertTiles tiles = tiles_of(y, x, w, chosen);
    const Dtype stored = first.values.dtype;
    with_tiling(x.dtype, stored, args.rows / experts, [&](auto x_value, auto w_value, auto tiling) {
        using X = decltype(x_value);
        using W = decltype(w_value);
        using T = decltype(tiling);
        const int64_t count = sort_pairs(ctx, tiles, args.rows, T::kRows);
        launch_tiled<T>(ctx, args, tiles, count, static_cast<const X*>(x.data),
                        static_cast<const W*>(first.values.data));
    });
    return true;
}

}  // namespace hark::cuda
