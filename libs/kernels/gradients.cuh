// The device's side of gradients.h.
#pragma once

#include "kernels/cuda_common.cuh"
#include "kernels/gradients.h"

namespace hark::cuda {

__attribute__((weak)) void linear_forward(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b,
                                          Tensor residual);
__attribute__((weak)) void linear_activated(Context& ctx, Tensor y, Tensor h, Tensor x, Tensor w,
                                            Tensor b, Activation f);
__attribute__((weak)) void linear_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy,
                                           Tensor x, Tensor w, const Activated& from);
__attribute__((weak)) void set_zero(Context& ctx, Tensor x);
__attribute__((weak)) void round_randomly(Context& ctx, Tensor to, Tensor x, uint64_t seed);
__attribute__((weak)) void activate(Context& ctx, Tensor y, Tensor x, Activation f);
__attribute__((weak)) void activate_backward(Context& ctx, Tensor dx, Tensor dy, Tensor x,
                                             Activation f);
__attribute__((weak)) void layer_norm_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db,
                                               Tensor dy, Tensor x, Tensor w, float eps);
__attribute__((weak)) void embedding_backward(Context& ctx, Tensor dtable, Tensor dpositions,
                                              Tensor dy, Tensor tokens, Tensor position);
__attribute__((weak)) void self_attention(Context& ctx, Tensor out, Tensor lse, Tensor qkv,
                                          const Sequences& sequences);
__attribute__((weak)) void self_attention_backward(Context& ctx, Tensor dqkv, Tensor dout,
                                                   Tensor out, Tensor lse, Tensor qkv,
                                                   const Sequences& sequences);
__attribute__((weak)) void cross_entropy(Context& ctx, Tensor losses, Tensor logits, Tensor targets,
                                         int64_t n_vocab, float scale);
__attribute__((weak)) void clip_by_norm(Context& ctx, Tensor clip, Tensor x, float max_norm);
__attribute__((weak)) void adamw(Context& ctx, Tensor p, Tensor m, Tensor v, Tensor g, Tensor clip,
                                 int64_t decayed, const AdamW& with);
__attribute__((weak)) void orthogonalize(Context& ctx, Tensor y, Tensor x);
__attribute__((weak)) void muon(Context& ctx, Tensor p, Tensor m, Tensor g, Tensor clip,
                                const Muon& with);

// db (N) += the sum of dy's rows, dy (T, N), in an order that the shape alone fixes.
__attribute__((weak)) void add_rows(Context& ctx, Tensor db, Tensor dy);

}  // namespace hark::cuda
