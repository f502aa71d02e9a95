#include "core/error.h"
#include "kernels/batch_layout.h"
#include "kernels/runtime/transfer.h"
#include "whisper/model/model.h"

namespace hark::whisper {

void EncoderBlock::operator()(Context& ctx, Tensor x, int64_t n_head,
                              const BatchLayout& windows) const {
    attn.add_to(ctx, x, attn_ln, n_head, windows);
    mlp.add_to(ctx, x, mlp_ln);
}

Tensor Encoder::operator()(Context& ctx, Tensor mel) const {
    const int64_t b = mel.dim(0), frames = mel.dim(1), c = positions.dim(1), t = positions.dim(0);
    require(mel.rank == 3 && frames == 2 * t && mel.dim(2) * 3 == conv1.values.dim(1),
            "encoder: expected mel (B, ", 2 * t, ", ", conv1.values.dim(1) / 3, "), found ", mel);
    Tensor out = ctx.arena.tensor(activations, {b * t, c});
    Arena::Scope scope(ctx.arena);
    const Stage stage(ctx, "encoder", mel);

    Tensor wide = ctx.arena.tensor(activations, {b, frames, c});
    conv1d(ctx, wide, mel, conv1, 1, {.bias = conv1_bias, .activation = Activation::gelu});
    Tensor x = ctx.arena.tensor(activations, {b, t, c});
    conv1d(ctx, x, wide, conv2, 2, {.bias = conv2_bias, .activation = Activation::gelu});
    add_positions(ctx, x, positions);  // (B, T, C)
    x = x.reshaped({b * t, c});
    const HostBatchLayout host = HostBatchLayout::equal(b, t);
    const BatchLayout windows = to_device(ctx, host.view());
    for (const EncoderBlock& block : blocks) block(ctx, x, n_head, windows);
    layer_norm(ctx, out, x, ln_post.weight, ln_post.bias, ln_post.eps);
    return out;  // (B * T, C)
}

}  // namespace hark::whisper
