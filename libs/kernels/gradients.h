// The catalogue's second page: what training needs in addition to ops.h. Gradients, the loss, the
// optimizer. The conventions are those of ops.h, with the same letters.
//
// dx is the derivative of the loss by x.
// Activations x, y and their gradients are f32 or bf16, all of a call alike; matrices that are
// multiplied with are of their type. Vectors, losses and gradients of weights are f32 everywhere.
// bf16 is what is stored: sums and functions are computed in f32, on the CPU from widened copies in
// ctx.arena, and every output is rounded to nearest even. Gradients of weights are added to (`+=`),
// so that a step may come in parts; a clipped or skipped step never leaves them half done. The same
// input gives the same bits: on the CPU with the same number of threads (only products depend on
// it: oneDNN may cut their sums), on a GPU with the same kind of GPU.
#pragma once

#include "kernels/ops.h"

namespace hark {

// y (T, N) = x W^T + b [+ residual], with w (N, K), b (N) or none; residual as y, or none. On a GPU
// the way to multiply is chosen for this number of rows, which linear() must not do.
void linear_forward(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, Tensor residual);

// y (T, N) = f(h) where h (T, N) = x W^T + b, which is written too. f is not none.
void linear_activated(Context& ctx, Tensor y, Tensor h, Tensor x, Tensor w, Tensor b, Activation f);

// What a product's x was made of: x = f(h).
struct Activated {
    Tensor h;  // as x; none: x was computed by nothing
    Activation f = Activation::none;
};

// Of y = x W^T + b: dx (T, K) = dy W, or none to leave it out; dw (N, K) += dy^T x; db (N) += the
// sum of dy's rows, or none. dy (T, N); x (T, K); w (N, K). With `from` dx is the gradient of its
// h.
void linear_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w,
                     const Activated& from = {});

// x = 0
void set_zero(Context& ctx, Tensor x);

// to (n) bf16 = x (n) f32, up or down to a neighbour by chance, so that the mean is x; the same for
// the same seed, on the CPU and every GPU. Infinities and NaN stay.
void round_randomly(Context& ctx, Tensor to, Tensor x, uint64_t seed);

// y = f(x) for each element, f not none; and dx = dy f'(x), where dx may be dy.
void activate(Context& ctx, Tensor y, Tensor x, Activation f);
void activate_backward(Context& ctx, Tensor dx, Tensor dy, Tensor x, Activation f);

// Of y = layer_norm(x): dx (T, C) += the gradient of x; dw, db (C) += theirs. dy, x (T, C), w (C).
// sums (C) += the sums of dx's columns after the call, of all of dx: the gradient of a bias that
// was added to x; or none.
void layer_norm_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x,
                         Tensor w, float eps = 1e-5f, Tensor sums = {});

// Of y = embedding(): dtable (V, C) += dy's rows at their tokens, dpositions (P, C) += those at
// their positions, in the order of the rows. dy (T, C); tokens, position (T) i32.
void embedding_backward(Context& ctx, Tensor dtable, Tensor dpositions, Tensor dy, Tensor tokens,
                        Tensor position);

// Packed rows in sequences that do not see one another: that of row t is the rows
// [first[t], end[t]). Their number may change where a step is recorded for a GPU.
struct Sequences {
    Tensor first, end;  // (T) i32
};

// Causal self-attention of packed rows: out (T, C) per head h softmax(q k^T / sqrt(D)) v over the
// rows up to and with its own of the sequence; lse (T, H) f32, the logarithm of the sum of
// exponentials, which backward needs. qkv (T, 3C): queries, keys and values, each (H, D).
void self_attention(Context& ctx, Tensor out, Tensor lse, Tensor qkv, const Sequences& sequences);
// dqkv (T, 3C) = the gradient of qkv, from dout and what forward has left in out and lse. The
// probabilities are computed again from them. Source: Dao 2023 (FlashAttention-2), algorithm 2.
void self_attention_backward(Context& ctx, Tensor dqkv, Tensor dout, Tensor out, Tensor lse,
                             Tensor qkv, const Sequences& sequences);

// losses (T) f32 = -log softmax(logits[t])[targets[t]], over the first `n_vocab` columns; a target
// of -1 has loss 0. Where `scale` is not 0, logits (T, V) become their gradient by `scale` times
// the sum of losses: zeros after n_vocab and in rows of target -1. targets (T) i32: one outside of
// the vocabulary is an Error, on a GPU it has loss NaN.
void cross_entropy(Context& ctx, Tensor losses, Tensor logits, Tensor targets, int64_t n_vocab,
                   float scale);

// clip (2) f32 = the norm of the gradients x (n), and what to multiply them with so that it is no
// more than max_norm: min(1, max_norm / (norm + 1e-6)), as PyTorch's clip_grad_norm_; 1 where
// max_norm is 0.
void clip_by_norm(Context& ctx, Tensor clip, Tensor x, float max_norm);

// AdamW (Loshchilov & Hutter 2019, algorithm 2), as PyTorch's: decay is multiplied with the rate.
struct AdamW {
    float rate = 0, beta1 = 0.9f, beta2 = 0.95f, eps = 1e-8f, decay = 0.1f;
    int64_t step = 1;  // from 1 on
};
// One step of all parameters p (n) f32, with gradients g (n) times clip[1], and moments m, v (n).
// The first `decayed` of them decay. Where clip[0] is not finite nothing changes.
void adamw(Context& ctx, Tensor p, Tensor m, Tensor v, Tensor g, Tensor clip, int64_t decayed,
           const AdamW& with);

// y (N, K) = about the nearest matrix with orthonormal rows (columns where N > K) to x, all of
// whose singular values become about 1: five steps of a Newton-Schulz iteration of degree 5 in f32.
// y may be x. Source: Jordan et al. 2024 (Muon), whose coefficients end at 0.7 to 1.2.
void orthogonalize(Context& ctx, Tensor y, Tensor x);

// Muon for a matrix: Nesterov momentum, orthogonalised. The update has the size of AdamW's, 0.2 for
// each element, so that rate and decay may be those of AdamW. Source: Jordan et al. 2024; Liu et
// al. 2025 (Muon is scalable), equation 4.
struct Muon {
    float rate = 0, momentum = 0.95f, decay = 0.1f;
    Dtype products = Dtype::f32;  // of the iteration; bf16 on a GPU alone, the CPU's are f32
};
// One step of the matrix p (N, K) f32, with gradients g times clip[1] and the momentum m. Where
// clip[0] is not finite nothing changes.
void muon(Context& ctx, Tensor p, Tensor m, Tensor g, Tensor clip, const Muon& with);

}  // namespace hark
