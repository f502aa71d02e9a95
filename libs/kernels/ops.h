// ops.h: the catalogue. Every kernel of hark, with its shapes.
//
// Outputs come first, then inputs, weights, scalars; Context before all. A kernel checks its
// arguments once, throws Error where they do not fit, and neither allocates (scratch comes from
// ctx.arena) nor synchronises. All tensors of a call live on ctx.device. Activations are f32 on
// the CPU, in what training takes of it (layer_norm, embedding) also bf16; on a GPU f32, f16 or
// bf16. Biases, norms and positions are f32. Letters: B sequences, T rows (tokens or frames, those
// of all sequences packed one after another), C channels, H heads, D channels of a head, V
// vocabulary.
//
// Ids, rows, slots and lengths are tensors too. On the CPU one that points outside is an Error. On
// a GPU the host does not see them: the result that it would have given is NaN, and what would have
// been written outside a cache is left out. attention() alone reads where it is told. Index tensors
// and weights may be written there only by uploads, or by kernels ahead of an embedding, which
// waits for all earlier work: other kernels read them before their predecessors finish.
#pragma once

#include "core/context.h"
#include "core/tensor.h"

namespace hark {

// On the CPU products of up to so many rows compute each as if it were alone.
inline constexpr int64_t kFewRowsOnCpu = 16;

// Of a sequence that has up to so many queries in a call of attention(), each is computed from the
// cache by itself; where one sequence of the call has more, a GPU takes tiles for all.
inline constexpr int64_t kFewQueries = 8;

// On a GPU products of fewer rows share one order of their sums, products of more rows another.
// An encoder's window has so many rows; prompts and steps are to stay below.
inline constexpr int64_t kManyRowsOnGpu = 1500;

// The weights of a product, stored (out, in) as f32, f16, bf16, i8 or ggml's quantised blocks.
// For i8, weight = value * scale of its row; blocks have their scales within.
struct Matrix {
    Tensor values;  // (N, K)
    Tensor scales;  // (N) f32, i8 only
};

enum class Activation { none, gelu, gelu_tanh };  // gelu: exact, with erf; gelu_tanh: GPT-2's

// Which queries and which keys belong together. Sequence b owns the packed rows
// [query_start[b], query_start[b+1]) and the keys [0, length[b]) of cache slot slot[b].
struct Ragged {
    Tensor query_start;       // (B + 1) i32
    Tensor slot;              // (B) i32
    Tensor length;            // (B) i32: keys after this call's have been appended
    int64_t max_queries = 0;  // the longest run of rows; on the host, for sizing
    int64_t max_length = 0;   // the largest of length
    // A promise: the caches, and what folded_attention() hears, were written before the last
    // embedding, except a causal call's own rows; so a GPU may read them early.
    bool settled = false;

    int64_t sequences() const { return slot.dim(0); }
};

// layer_norm's weights.
struct Norm {
    Tensor weight, bias;  // (K) f32, or none
    float eps = 1e-5f;
};

// append_cache's arguments, all but x.
struct Append {
    Tensor keys, values;
    int64_t first;
    const Ragged& rows;
};

// What is fused behind a product: y = residual + activation(product + bias).
struct Epilogue {
    Tensor bias;  // (N) f32, or none
    Activation activation = Activation::none;
    Tensor residual;  // as y, or none; may be y itself
};

// What goes with a linear: a norm of x in front of it, append_cache of y behind it. Both have the
// bits that they have by themselves.
struct Company {
    Norm norm;                       // without a weight: none
    const Append* append = nullptr;  // or none
};

// y (T, N) = epilogue(x (T, K) W^T). On the CPU up to 16 rows are multiplied from the stored
// weights, and a row's bits do not depend on the rows beside it: in f32, and int8 weights in
// integers, with x rounded to over 13 bits at K = 1536 (by its row's largest value), quantised
// weights in integers with x rounded to 16 bits. More rows are rounded to bf16 for bf16 weights and
// to int8 for int8 weights where the processor multiplies those. On a GPU a row's bits depend on no
// other row nor on their number, below 1500 rows and from 1500 on. With a norm y is not x.
void linear(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then = {},
            const Company& with = {});

// y (T2, N) = epilogue(convolution over time of x (T1, C), kernel 3, zero padding 1)
// T2 = (T1 - 1) / stride + 1; w (N, 3 * C), tap-major: w[n][tap * C + c]; B sequences: x (B, T1, C)
// On a GPU x may be f32 where y has 16 bits: the product is then of y's type.
void conv1d(Context& ctx, Tensor y, Tensor x, const Matrix& w, int stride,
            const Epilogue& then = {});

// y = (x - mean(x)) / sqrt(var(x) + eps) * w + b      x, y (T, C)   w, b (C)
// y may be x; on a GPU it may have 16 bits where x is f32.
void layer_norm(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, float eps = 1e-5f);

// y (T, C) = table[tokens[t]] + positions[position[t]]      tokens, position (T) i32
void embedding(Context& ctx, Tensor y, Tensor tokens, Tensor position, const Matrix& table,
               Tensor positions);

// x (B, T, C) += positions (T, C)
void add_positions(Context& ctx, Tensor x, Tensor positions);

// y (n, C) = x[rows[i]]      rows (n) i32; on a GPU y may be of another type than x
void select_rows(Context& ctx, Tensor y, Tensor x, Tensor rows);

// Writes the rows of x as the newest keys and values of their sequences:
// keys[slot[b]][h][length[b] - queries(b) + j] = x[query_start[b] + j][first + h * D ..]
// and values likewise from column first + H * D on
// keys, values (slots, H, capacity, D) of one type: f32, f16 or bf16; x (T, W), its columns from
// `first` on are (2, H, D)
void append_cache(Context& ctx, Tensor keys, Tensor values, Tensor x, int64_t first,
                  const Ragged& rows);

// Beams and copies: cache[to[i]] = old cache[from[i]], the first `length` positions of every head.
// from, to (n) i32; all reads happen before the writes. No slot is twice in `to`.
void copy_cache(Context& ctx, Tensor cache, Tensor from, Tensor to, int64_t length);

// out (T, H * D): softmax(q k^T * scale) v, per head, over the keys of the row's own sequence.
// q (T, W), its columns from 0 on are (H, D); keys, values (slots, Hkv, capacity, D) in the same
// dtype; H is a multiple of Hkv; scale > 0. causal: query j of n sees keys [0, length - n + j + 1).
// Numerator and denominator are kept in f32. A query without keys is an Error, found on the CPU. No
// sequence's bits depend on another's, on a GPU as long as none of the call, or each, has more than
// kFewQueries; a row's do not depend on the others of its sequence where these are no more. Source:
// Vaswani et al. 2017, equation 1.
void attention(Context& ctx, Tensor out, Tensor q, Tensor keys, Tensor values, const Ragged& rows,
               float scale, bool causal);

// scores (n, T, frames) f32: scores[i][t][j] = scale * q[t] . key j of the row's own sequence, in
// head heads[i]: what attention() takes the softmax of, for a few heads and the first keys alone.
// heads (n) i32, always on the host; q (T, W), its columns from 0 on are (H, D); keys (slots, H,
// capacity, D); every sequence has `frames` keys at least.
void attention_scores(Context& ctx, Tensor scores, Tensor q, Tensor keys, Tensor heads,
                      const Ragged& rows, float scale);

// out (T, C): per head h softmax(q_h K_h^T * scale) V_h, where K_h = X Wk_h^T, V_h = X Wv_h^T +
// bv_h and X = heard[slot], the encoder's output: cross-attention that stores neither keys nor
// values. A GPU folds the products into query and result, (q_h Wk_h) X^T and (P X) Wv_h^T + bv_h,
// and reads X once for all heads; it takes what can_fold() says, the CPU f32 q, heard and out. q
// (T, C), C = heads * D; heard (slots, frames, C); kv (2C, C): the rows of Wk, then those of Wv;
// kv_bias (2C) f32: what it adds to keys shifts all scores of a row alike and changes nothing.
// Every row sees the keys [0, length) of its sequence; none is an Error, found on the CPU. On a GPU
// a row's bits depend neither on the other rows nor on their number.
void folded_attention(Context& ctx, Tensor out, Tensor q, Tensor heard, const Matrix& kv,
                      Tensor kv_bias, int64_t heads, const Ragged& rows, float scale);

// Whether a GPU folds: q, out and heard of one 16-bit type, kv of that type or int8, D 64, C a
// multiple of 128 up to 1024, or 1280, frames up to 1536.
inline bool can_fold(Dtype activations, Dtype weights, int64_t channels, int64_t heads,
                     int64_t frames) {
    const bool types = (activations == Dtype::f16 || activations == Dtype::bf16) &&
                       (weights == activations || weights == Dtype::i8);
    const bool size = channels == 1280 || (channels % 128 == 0 && channels <= 1024);
    return types && size && channels == 64 * heads && heads > 0 && frames > 0 && frames <= 1536;
}

}  // namespace hark
