// gradients.h: the second page of the catalogue (ops.h). The operations of training: gradients, the
// loss, the optimizer. Conventions and letters are those of ops.h.
//
// Names: dx is the derivative of the loss by x.
//
// Types: activations x, y and their gradients are f32 or bf16, the same type in all of a call. So
// are the matrices of products. Vectors, losses and gradients of weights are always f32. bf16 is a
// storage type: sums and functions are computed in f32 (on the CPU from f32 copies in ctx.arena),
// and every output is rounded to nearest even.
//
// Gradients of weights are added to (`+=`), so a step can have several parts. A clipped or skipped
// step is never applied to some of them only.
//
// Bits: the same input gives the same bits. On the CPU products depend on the number of threads,
// since oneDNN may split their sums by it. On a GPU all results depend on the kind of GPU.
#pragma once

#include "kernels/ops.h"

namespace hark {

// y (T, N) = x (T, K) W^T + b [+ residual], with w (N, K), b (N) or none; residual: shape and type
// of y, or none. On a GPU the algorithm is chosen for this number of rows, unlike in linear().
void linear_forward(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, Tensor residual);

// h (T, N) = x (T, K) W^T + b and y (T, N) = f(h). Both are outputs. f is not none.
void linear_activation(Context& ctx, Tensor y, Tensor h, Tensor x, Tensor w, Tensor b,
                       Activation f);

// The origin of a product's input: x = f(h).
struct Activated {
    Tensor h;  // shape and type of x; none: x is not the output of an activation
    Activation f = Activation::none;
};

// The gradients of y = x W^T + b: dx (T, K) = dy W, or none to skip it; dw (N, K) += dy^T x;
// db (N) += the column sums of dy, or none. dy (T, N); x (T, K); w (N, K). With `from`, dx is the
// gradient of from.h.
void linear_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w,
                     const Activated& from = {});

// x = 0
void set_zero(Context& ctx, Tensor x);

// to (n) bf16 = x (n) f32, stochastically rounded to one of the two neighbours, so that the mean is
// x. The same seed gives the same bits on the CPU and every GPU. Infinities and NaN are kept.
void stochastic_round(Context& ctx, Tensor to, Tensor x, uint64_t seed);

// Element-wise: y = f(x), and dx = dy f'(x). f is not none; dx may be dy.
void activate(Context& ctx, Tensor y, Tensor x, Activation f);
void activate_backward(Context& ctx, Tensor dx, Tensor dy, Tensor x, Activation f);

// The gradients of y = layer_norm(x): dx (T, C) += that of x; dw, db (C) += those of w and b.
// dy, x (T, C); w (C). sums (C), or none: += the column sums of the new dx, which are the gradient
// of a bias that was added to x.
void layer_norm_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x,
                         Tensor w, float eps = 1e-5f, Tensor sums = {});

// The same of y = rms_norm(x), which has no b.
void rms_norm_backward(Context& ctx, Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, float eps,
                       Tensor sums = {});

// The gradients of y = gated_activation(gate, up): d_gate = dy f'(gate) up and d_up = dy f(gate).
// dy (T, N); N columns of each of the others. d_gate and d_up may be columns of one tensor; they
// are not columns of an input.
void gated_activation_backward(Context& ctx, const Columns& d_gate, const Columns& d_up, Tensor dy,
                               const Columns& gate, const Columns& up, Activation f);

// Turns `heads` heads of D channels in each row of x, in place, by the row's position. With `back`
// by the opposite angles: the transpose, which makes the gradient of the turned heads that of the
// heads before. The scale is a factor of both. position (T) i32.
void rope(Context& ctx, const Columns& x, int64_t heads, int64_t d, Tensor position, const Rope& by,
          bool back = false);

// n columns of `to` = those of `from`; both have T rows and one type. They do not overlap.
void copy_columns(Context& ctx, const Columns& to, const Columns& from, int64_t n);

// The gradients of y = embedding(): dtable (V, C) += dy's rows at their tokens, dpositions (P, C)
// += dy's rows at their positions, or none, in the order of the rows. dy (T, C); tokens, position
// (T) i32.
void embedding_backward(Context& ctx, Tensor dtable, Tensor dpositions, Tensor dy, Tensor tokens,
                        Tensor position);

// Packed sequences that do not see one another: row t belongs to the rows [first[t], end[t]). If a
// step is recorded on a GPU, the number of sequences may differ between replays.
struct Sequences {
    Tensor first, end;  // (T) i32
};

// Causal self-attention of packed rows. out (T, H * D): per head h softmax(q k^T / sqrt(D)) v over
// the rows of the sequence up to the own one. lse (T, H) f32: the logarithm of the sum of
// exponentials, an input of the gradient. qkv (T, (H + 2 Hkv) * D): queries (H, D), keys and values
// (Hkv, D) each. Hkv divides H: H / Hkv heads after one another share a head of keys and values
// (Ainslie et al. 2023, section 2.2).
void self_attention(Context& ctx, Tensor out, Tensor lse, Tensor qkv, const Sequences& sequences);

// dqkv = the gradient of qkv, of its shape, from dout (T, H * D) and self_attention()'s out and
// lse. The probabilities are recomputed. Source: Dao 2023 (FlashAttention-2), algorithm 2.
void self_attention_backward(Context& ctx, Tensor dqkv, Tensor dout, Tensor out, Tensor lse,
                             Tensor qkv, const Sequences& sequences);

// losses (T) f32 = -log softmax(logits[t])[targets[t]] over the first n_vocab columns; a target of
// -1 has loss 0. If scale is not 0, logits (T, V) become the gradient of scale * the sum of losses:
// zeros in the columns from n_vocab and in rows of target -1.
// targets (T) i32: a target outside the vocabulary is an Error on the CPU, loss NaN on a GPU.
void cross_entropy(Context& ctx, Tensor losses, Tensor logits, Tensor targets, int64_t n_vocab,
                   float scale);

// clip (2) f32: clip[0] = the norm of the gradients x (n); clip[1] = the factor that limits it to
// max_norm, min(1, max_norm / (norm + 1e-6)), or 1 if max_norm is 0. As PyTorch's clip_grad_norm_.
void clip_by_norm(Context& ctx, Tensor clip, Tensor x, float max_norm);

// AdamW's parameters (Loshchilov & Hutter 2019, algorithm 2). As in PyTorch, the decay is
// multiplied by the rate.
struct AdamW {
    float rate = 0, beta1 = 0.9f, beta2 = 0.95f, eps = 1e-8f, decay = 0.1f;
    int64_t step = 1;  // from 1
};

// One AdamW step of the parameters p (n) f32, with gradients g (n) times clip[1] and moments m, v
// (n). The first `decayed` parameters decay. If clip[0] is not finite, nothing changes.
void adamw(Context& ctx, Tensor p, Tensor m, Tensor v, Tensor g, Tensor clip, int64_t decayed,
           const AdamW& with);

// y (N, K) = approximately the nearest matrix to x with orthonormal rows (columns if N > K): five
// Newton-Schulz steps of degree 5 in f32 bring all singular values to about 1 (0.7 to 1.2 with the
// source's coefficients). y may be x. Source: Jordan et al. 2024 (Muon).
void orthogonalize(Context& ctx, Tensor y, Tensor x);

// Muon's parameters: orthogonalised Nesterov momentum of a matrix. An update has the size of
// AdamW's, 0.2 per element, so rate and decay can be AdamW's. Source: Jordan et al. 2024;
// Liu et al. 2025 (Muon is scalable), equation 4.
struct Muon {
    float rate = 0, momentum = 0.95f, decay = 0.1f;
    Dtype products = Dtype::f32;  // of the iteration; bf16 on a GPU only, the CPU uses f32
};

// One Muon step of the matrix p (N, K) f32, with gradients g times clip[1] and the momentum m. If
// clip[0] is not finite, nothing changes.
void muon(Context& ctx, Tensor p, Tensor m, Tensor g, Tensor clip, const Muon& with);

}  // namespace hark
