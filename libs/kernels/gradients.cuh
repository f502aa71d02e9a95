// The device's side of gradients.h.
#pragma once

#include "kernels/cuda_common.cuh"
#include "kernels/gradients.h"

namespace hark::cuda {

void linear_forward(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, Tensor residual);
void linear_activated(Context& ctx, Tensor y, Tensor h, Tensor x, Tensor w, Tensor b, Activation f);
void linear_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w,
                     const Activated& from);
void set_zero(Context& ctx, Tensor x);
void round_randomly(Context& ctx, Tensor to, Tensor x, uint64_t seed);
void activate(Context& ctx, Tensor y, Tensor x, Activation f);
void activate_backward(Context& ctx, Tensor dx, Tensor dy, Tensor x, Activation f);
void layer_norm_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x,
                         Tensor w, float eps, Tensor sums);
void embedding_backward(Context& ctx, Tensor dtable, Tensor dpositions, Tensor dy, Tensor tokens,
                        Tensor position);
void self_attention(Context& ctx, Tensor out, Tensor lse, Tensor qkv, const Sequences& sequences);
void self_attention_backward(Context& ctx, Tensor dqkv, Tensor dout, Tensor out, Tensor lse,
                             Tensor qkv, const Sequences& sequences);
void cross_entropy(Context& ctx, Tensor losses, Tensor logits, Tensor targets, int64_t n_vocab,
                   float scale);
void clip_by_norm(Context& ctx, Tensor clip, Tensor x, float max_norm);
void adamw(Context& ctx, Tensor p, Tensor m, Tensor v, Tensor g, Tensor clip, int64_t decayed,
           const AdamW& with);
void orthogonalize(Context& ctx, Tensor y, Tensor x);
void muon(Context& ctx, Tensor p, Tensor m, Tensor g, Tensor clip, const Muon& with);

// db (N) += the sum of dy's rows, dy (T, N), in an order that the shape alone fixes.
void add_rows(Context& ctx, Tensor db, Tensor dy);

}  // namespace hark::cuda
