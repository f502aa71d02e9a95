#include "kernels/experts/expert_tiles.cuh"
#include "kernels/linear/quantized_whole_rows.cuh"
#include "kernels/linear/small_m_quantized.cuh"

namespace hark::cuda {
namespace {

// y for tiles of one pair. Returns false, and does nothing, if whole_rows does not take them.
template <class Rows>
bool multiply_whole_rows(Context& ctx, SmallMArgs args, const ExpertTiles& tiles,
                         const typename Rows::X* x, const uint8_t* w, int64_t stride) {
    const auto shared =
        whole_rows::divide<Rows>(args, tiles, w, stride, tiles.bytes | tiles.up_bytes);
    if (shared.stages == 0) return false;
    const bool early = !tiles.is_gated && handles_of(ctx).ready_ids == tiles.chosen;
    whole_rows::start<false, Rows>(ctx, args, shared, tiles, x, w, stride, early);
    if (tiles.is_gated) handles_of(ctx).ready_ids = tiles.chosen;
    return true;
}

// y for tiles of up to 8 NT pairs.
template <class Block, int NT, class X>
void launch_tiles(Context& ctx, const SmallMArgs& args, ExpertTiles tiles, const X* x,
                  const uint8_t* w, int64_t stride) {
    const Arena::Scope scope(ctx.arena);
    const int64_t count = sort_pairs(ctx, tiles, args.rows, 8 * NT);
    if (!tiles.order && !ctx.batch_invariant) {  // tiles of one pair
        if constexpr (kHasRowsOfTile<X, Block>)
            if (multiply_whole_rows<RowsOfTile<X, Block>>(ctx, args, tiles, x, w, stride)) return;
        return launch_quantized<Block, OneRow<X, Block>>(ctx, args, tiles, count, x, w, stride);
    }
    launch_quantized<Block, ManyRows<X, Block, NT>>(ctx, args, tiles, count, x, w, stride);
}

template <class Block, class X>
void launch_experts(Context& ctx, const SmallMArgs& args, const ExpertTiles& tiles, const X* x,
                    const uint8_t* w, int64_t stride) {
    if (args.rows > 8 * int64_t{tiles.experts} && has_room_for_many<Block>(args))
        return launch_tiles<Block, 4>(ctx, args, tiles, x, w, stride);
    launch_tiles<Block, 1>(ctx, args, tiles, x, w, stride);
}

}  // namespace

bool quantized_experts(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& w,
                       const ExpertMatrices* up, Tensor chosen, const Gating& by) {
    const Matrix& first = w.each.front();
    const Dtype stored = first.values.dtype;
    const bool types = x.dtype == Dtype::f16 || (x.dtype == Dtype::bf16 && stored == Dtype::mxfp4);
    if (!is_quantized(stored) || !types || !in_packs(x.dim(1), {x.data}) ||
        w.each.size() > kMostTiledExperts || (up && up->each.front().values.dtype != stored))
        return false;
    SmallMArgs args(y, x, first, {});
    args.rows = y.dim(0);
    args.gate = by.activation;
    args.swiglu_slope = by.slope;
    args.swiglu_limit = by.limit;
    const auto* weights = static_cast<const uint8_t*>(first.values.data);
    const auto stride = static_cast<int64_t>(row_bytes(stored, args.k));
    ExpertTiles tiles = tiles_of(y, x, w, chosen);
    if (up) {
        tiles.is_gated = true;
        tiles.up_bytes = static_cast<const uint8_t*>(up->each.front().values.data) - weights;
        tiles.up_bias = up->bias ? up->bias.as<float>() : nullptr;
    }
    if (x.dtype == Dtype::bf16) {
        launch_experts<BlockMXFP4>(ctx, args, tiles, static_cast<const __nv_bfloat16*>(x.data),
                                   weights, stride);
        return true;
    }
    with_block_type(stored, [&](auto block) {
        launch_experts<decltype(block)>(ctx, args, tiles, static_cast<const __half*>(x.data),
                                        weights, stride);
    });
    return true;
}

}  // namespace hark::cuda
