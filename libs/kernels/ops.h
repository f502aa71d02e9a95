// ops.h: the catalogue. Every operation of inference, with its shapes.
//
// Context comes first, then outputs, inputs, weights, scalars. An operation checks its arguments
// once and throws Error if they do not fit. It neither allocates (scratch comes from ctx.arena) nor
// synchronises. All tensors of a call are on ctx.device. Activations are f32 on the CPU (bf16 too
// in layer_norm and embedding, for training), on a GPU f32, f16 or bf16. Biases, norms and
// positions are f32. Letters: B sequences, T packed rows (tokens or frames), C channels, H heads,
// D channels of a head, V vocabulary.
//
// Ids, rows, slots and lengths are tensors too. An index out of range is an Error on the CPU. On a
// GPU it gives NaN, and nothing is written outside a cache; attention() does not check its indices
// there. Index tensors and weights may be written on a GPU only by uploads, or by kernels before an
// embedding, which waits for all earlier work: other kernels read them before their predecessors
// end.
#pragma once

#include <vector>

#include "core/context.h"
#include "core/tensor.h"

namespace hark {

// On the CPU a product of at most this many rows computes each row as if it were alone.
inline constexpr int64_t kFewRowsOnCpu = 16;

// attention() computes each query of a sequence by itself if the sequence has at most this many in
// the call. If one sequence has more, a GPU takes tiles for all of them.
inline constexpr int64_t kFewQueries = 8;

// On a GPU products of fewer rows share one order of their sums, products of more rows another.
// 1500 = rows of one Whisper encoder window. Prompts and decode batches must stay below.
inline constexpr int64_t kManyRowsOnGpu = 1500;

// The weights of a product, stored (out, in) as f32, f16, bf16, i8, fp8 or ggml's quantised blocks.
// i8, fp8: weight = value * scale of its row. Blocks contain their scales.
struct Matrix {
    Tensor values;  // (N, K)
    Tensor scales;  // (N) f32, i8 and fp8 only
    // Of bf16 weights: the CPU does not round x to bf16, whatever the number of rows.
    bool exact_x = false;

    // Bits to which the CPU may round x of many rows, and what is computed of y; 32: f32.
    int x_bits() const {
        if (values.dtype == Dtype::i8) return 8;
        return values.dtype == Dtype::bf16 && !exact_x ? 16 : 32;
    }
};

// The matrices of a mixture's E experts, each (N, K). On a GPU they have one type and are
// stored one after another.
struct ExpertMatrices {
    std::vector<Matrix> each;  // E
    Tensor bias;               // (E, N) f32, or none
};

// gelu: exact, with erf; gelu_tanh: GPT-2's; silu: x / (1 + exp(-x))
enum class Activation { none, gelu, gelu_tanh, silu };

// Which queries and keys belong together. Sequence b has the packed rows
// [query_start[b], query_start[b + 1]) and the keys [0, length[b]). A cache consists of blocks of S
// positions: key p of sequence b is row p % S of block block_table[b][p / S]. A sequence whose keys
// are all in one block (a slot) has a table of one entry. On the CPU attention() with a window
// reads no entry before the window of a sequence's first row, and the operations that write a cache
// read none before that row.
struct BatchLayout {
    Tensor query_start;       // (B + 1) i32
    Tensor block_table;       // (B, M) i32, or (B) for M = 1
    Tensor length;            // (B) i32: keys, including those that this call appends
    int64_t max_queries = 0;  // the most rows of a sequence; on the host, for sizing
    int64_t max_length = 0;   // the largest length
    // True if earlier kernels have finished writing the caches and the encoder's output before the
    // last embedding, except for the rows of a causal call. Kernels may then prefetch them.
    bool kv_ready = false;
    // The first `few` sequences have at most few_queries rows, and the others more: a GPU computes
    // the two parts by kernels of their own. 0: no such order.
    int64_t few = 0, few_queries = 0;

    int64_t sequences() const { return block_table.dim(0); }
    int64_t blocks() const { return block_table.rank == 2 ? block_table.dim(1) : 1; }  // M
};

enum class NormKind { layer, rms };

// The arguments of layer_norm or rms_norm without x.
struct Norm {
    Tensor weight, bias;  // (C) f32, or none; rms_norm has no bias
    float eps = 1e-5f;
    NormKind kind = NormKind::layer;
};

// The arguments of append_cache without x.
struct Append {
    Tensor keys, values;
    int64_t first;
    const BatchLayout& rows;
};

// What a product does with its sums: y = residual + activation(product + bias).
struct Epilogue {
    Tensor bias;  // (N) f32, or none
    Activation activation = Activation::none;
    Tensor residual;  // as y, or none; may be y itself
};

// Columns [first, first + n) of each row of a tensor (T, W); n follows from the operation.
struct Columns {
    Tensor rows;
    int64_t first = 0;
};

// Rotary positions. Channel i of a head turns with channel i + R / 2, R = 2 * the number of
// frequencies, by position * frequencies[i] radians; channels from R on stay. Cosine and sine are
// multiplied by `scale` (YaRN's attention factor). Source: Su et al. 2021, equation 34, in the
// order of halves of transformers' rotate_half.
struct Rope {
    Tensor frequencies;  // (R / 2) f32
    float scale = 1;
};

// How route_experts() chooses a row's experts and weighs them. Groups are of neighbouring experts,
// equally many each. A group's score is its largest one, with sigmoid the sum of its two largest;
// in groups that are not kept, experts are not chosen (softmax) or have the score 0 (sigmoid).
// Source: DeepSeek-V2 2024, section 2.2.2; DeepSeek-V3 2024, sections 2.1.2 and 4.2.
struct Routing {
    bool normalized = true;  // a row's weights have the sum `scale`
    bool sigmoid = false;    // an expert's score is the sigmoid of its own logit
    Tensor bias;             // (E) f32 or none: added to the scores for the choice alone
    int64_t groups = 1, kept_groups = 1;
    float scale = 1;  // of the weights
};

// How attention() computes scores, and which keys a query sees.
struct AttentionOptions {
    float scale = 1;
    bool causal = false;  // query j of n sees keys [0, length - n + j + 1), else all
    int64_t window = 0;   // only the newest `window` of those keys; 0: all
    float soft_cap = 0;   // score = soft_cap * tanh(score / soft_cap); 0: unchanged
    Tensor sinks;         // (H) f32 or none: a further logit of each head's softmax, with value 0
    // Of queries and keys, 32, 16 or 8. Below 32 a CPU with AVX-512 and VNNI computes sequences of
    // more than kFewQueries queries that all see all keys, in one f32 block, in integers
    // (kernels/attention/cpu/integer_attention.h).
    int bits = 32;
};

// Optional fusions of a linear: the norm of x first; gated_activation of the product's two halves,
// or append_cache of y, last. Results are equal, to the bit, to those of separate calls.
struct LinearFusion {
    Norm norm;                       // no norm if it has no weight
    const Append* append = nullptr;  // or none
    bool gated = false;  // y (T, N / 2) = activation(first half) * second half, without a residual
};

// y (T, N) = epilogue(x (T, K) W^T), or (T, N / 2) if gated. With a norm y is not x.
// CPU: up to 16 rows are multiplied from the stored weights, and a row's bits do not depend on the
// other rows. They are f32 sums, except for int8 weights (integers, x rounded to over 13 bits at K
// = 1536) and quantised weights (integers, x rounded to 16 bits). With more rows x is rounded to
// bf16 for bf16 weights without exact_x and to int8 for int8 weights if the processor multiplies
// those, and to 16 bits for quantised weights if it has AVX-512 and VNNI. With AMX the others are
// sums of bf16 parts (docs/kernels/cpu.md). Up to 16 rows, and with quantised weights there, no bit
// depends on the number of threads. With ctx.few_row_products all rows are computed in this way.
// GPU: with ctx.batch_invariant a row's bits depend neither on the other rows nor on their number,
// below 1500 rows and from 1500 on; without it the faster products begin at 33 rows (16-bit
// weights), 96 (quantised ones) or 192. fp8 weights: from 1500 rows on, or from 33 if rows may
// depend on their number, an sm_90 GPU rounds each row of x to e4m3 with a scale of its own
// (quantize_fp8) if K is a multiple of 16; others, and all on the CPU, are not rounded.
void linear(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then = {},
            const LinearFusion& with = {});

// y (T2, N) = epilogue(convolution over time of x (T1, C), kernel 3, zero padding 1)
// T2 = (T1 - 1) / stride + 1; w (N, 3 * C), tap-major: w[n][tap * C + c]; B sequences: x (B, T1, C)
// On a GPU x may be f32 if y has 16 bits: the product then has y's type.
void conv1d(Context& ctx, Tensor y, Tensor x, const Matrix& w, int stride,
            const Epilogue& then = {});

// y = (x - mean(x)) / sqrt(var(x) + eps) * w + b      x, y (T, C)   w, b (C)
// y may be x; on a GPU it may have 16 bits if x is f32. Source: Ba et al. 2016.
void layer_norm(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, float eps = 1e-5f);

// y = x / sqrt(mean(x^2) + eps) * w      x, y (T, C)   w (C)
// y may be x; on a GPU it may have 16 bits if x is f32. Source: Zhang & Sennrich 2019, equation 4.
void rms_norm(Context& ctx, Tensor y, Tensor x, Tensor w, float eps);

// The one that `norm` asks for.
inline void normalize(Context& ctx, Tensor y, Tensor x, const Norm& norm) {
    if (norm.kind == NormKind::rms) return rms_norm(ctx, y, x, norm.weight, norm.eps);
    layer_norm(ctx, y, x, norm.weight, norm.bias, norm.eps);
}

// y (T, N) = f(gate) * up, N columns each, in f32; f is not none. Source: Shazeer 2020, section 2.
void gated_activation(Context& ctx, Tensor y, const Columns& gate, const Columns& up, Activation f);

// y (T, N) = (u + 1) * g / (1 + exp(-slope * g)), where g = min(gate, limit) and u is up clamped to
// [-limit, limit]; N columns each, in f32. Source: openai/gpt-oss gpt_oss/torch/model.py, swiglu.
void clamped_swiglu(Context& ctx, Tensor y, const Columns& gate, const Columns& up, float slope,
                    float limit);

// A mixture of experts: k of E experts compute each row. A pair is a row and one of its experts.
// Source: Shazeer et al. 2017, section 2.1; Jiang et al. 2024 (Mixtral), section 2.1.

// Chooses each row's k experts with the largest scores, in descending order; of equal ones the
// lowest expert first. logits (T, E) f32, chosen (T, k) i32, weights (T, k) f32. The scores are the
// softmax of the logits, or as `routing` says. E is at most 1024.
void route_experts(Context& ctx, Tensor chosen, Tensor weights, Tensor logits,
                   const Routing& routing);

// y (P, N): y[p] = W x[p / (P / T)] + bias, of expert chosen[p]
// x (T, K), where T divides P; chosen: P i32, which kernels may have written
// CPU: as linear() of each expert's rows. GPU: a row's bits depend on other rows only if the
// context is not batch-invariant and there are many pairs of quantised weights.
void expert_linear(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& w, Tensor chosen);

// What a mixture's experts do with their two first products.
struct Gating {
    Activation activation = Activation::silu;
    float slope = 0, limit = 0;  // a limit above 0: clamped_swiglu's arguments, for the activation
};

// y (P, N) = activation(expert_linear of gate) * expert_linear of up, or clamped_swiglu of both.
// The same bits as separate calls.
void gated_experts(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& gate,
                   const ExpertMatrices& up, Tensor chosen, const Gating& by);

// x (T, C) += sum over j of weights[t][j] * y[t * k + j]      y (T * k, C)   weights (T, k) f32
// The sum is f32, in the order of j.
void add_experts(Context& ctx, Tensor x, Tensor y, Tensor weights);

// y (T, C) = table[tokens[t]] * scale + positions[position[t]]      tokens, position (T) i32
// positions (P, C) f32, or none
void embedding(Context& ctx, Tensor y, Tensor tokens, Tensor position, const Matrix& table,
               Tensor positions, float scale = 1);

// x (B, T, C) += positions (T, C)
void add_positions(Context& ctx, Tensor x, Tensor positions);

// x (T, C) += y (T, C) * scale
void add_scaled(Context& ctx, Tensor x, Tensor y, float scale);

// x (T, V) f32 = cap * tanh(x * scale / cap); x * scale if cap is 0. For logits.
void scale_logits(Context& ctx, Tensor x, float scale, float cap);

// y (n, C) = x[rows[i]]      rows (n) i32; on a GPU y may have another type than x
void select_rows(Context& ctx, Tensor y, Tensor x, Tensor rows);

// Writes the rows of x as the newest keys and values of their sequences: for p = length[b] -
// queries(b) + j
//   keys[block_table[b][p / S]][h][p % S] = x[query_start[b] + j][first + h * D ..]
// and values the same from column first + H * D.
// keys, values (blocks, H, S, D) of one type: f32, f16, bf16, or q8_0 with D a multiple of 32;
// x (T, W), whose columns from `first` are (2, H, D)
void append_cache(Context& ctx, Tensor keys, Tensor values, Tensor x, int64_t first,
                  const BatchLayout& rows);

// The step between the product and attention() of a decoder with rotary positions. Per head of D
// channels: norms q and k in place where q_norm and k_norm have weights (D), turns them by the
// rope, then writes k and v to the caches as append_cache does. q (T, H * D), k and v (T, Hkv * D);
// position (T) i32; a rope without frequencies turns nothing.
void rope_append(Context& ctx, Tensor keys, Tensor values, const Columns& q, const Columns& k,
                 const Columns& v, int64_t heads, Tensor position, const Rope& rope,
                 const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows);

// cache[to[i]] = old cache[from[i]], the first `length` positions of every head: for beams.
// from, to (n) i32; all reads happen before the writes. No slot is in `to` twice.
void copy_cache(Context& ctx, Tensor cache, Tensor from, Tensor to, int64_t length);

// out (T, H * D) = softmax(q k^T * scale) v, per head, over the keys of the row's own sequence
// q (T, W), whose columns from 0 are (H, D); keys, values (blocks, Hkv, S, D) of one dtype; H
// is a multiple of Hkv; scale > 0. The options change scores and which keys a query sees.
// Numerator and denominator are f32. A query without keys is an Error, on the CPU. No sequence's
// bits depend on another's; on a GPU only if none of the call, or each, has more than kFewQueries.
// q8_0 is read as the numbers that it stands for; a GPU's tiles round them to q's type.
// A row's bits do not depend on the other rows of its sequence if these are at most kFewQueries.
// Source: Vaswani et al. 2017, equation 1.
void attention(Context& ctx, Tensor out, Tensor q, Tensor keys, Tensor values,
               const BatchLayout& rows, const AttentionOptions& options);

// rope_append, then attention of its queries, for a decoder's layer; out (T, H * D), q from column
// 0 on. On a GPU one kernel does both for sequences with one row each whose query heads share keys.
// What q and k have afterwards is not specified.
void rope_attention(Context& ctx, Tensor out, Tensor keys, Tensor values, const Columns& q,
                    const Columns& k, const Columns& v, Tensor position, const Rope& rope,
                    const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows,
                    const AttentionOptions& options);

// append_cache of all rows to empty caches, then attention, where each of B sequences has the T / B
// packed rows of its queries as keys: an encoder's layer. out (T, H * D); q_k_v (T, 3 * H * D) has
// queries, keys and values. A GPU reads keys and values where they are if a sequence has more than
// kFewQueries rows, q_k_v has 16 bits and D is 64 or 128; else the caches are scratch.
void packed_attention(Context& ctx, Tensor out, Tensor q_k_v, int64_t heads,
                      const BatchLayout& rows, const AttentionOptions& options);

// scores (n, T, frames) f32: scores[i][t][j] = scale * q[t] . key j of the row's own sequence, in
// head heads[i]: attention()'s scores before softmax, for a few heads and the first keys.
// heads (n) i32, always on the host; q (T, W), whose columns from 0 are (H, D); keys (slots, H,
// capacity, D), one block per sequence; every sequence has at least `frames` keys.
void attention_scores(Context& ctx, Tensor scores, Tensor q, Tensor keys, Tensor heads,
                      const BatchLayout& rows, float scale);

// out (T, C): per head h softmax(q_h K_h^T * scale) V_h, where K_h = X Wk_h^T, V_h = X Wv_h^T +
// bv_h and X = encoder_out[block_table[b]]: cross-attention that stores neither keys nor values. A
// GPU absorbs the products into query and result, (q_h Wk_h) X^T and (P X) Wv_h^T + bv_h, and reads
// X once for all heads. Types and sizes: on a GPU those of can_absorb(), on the CPU f32. q (T, C),
// C = heads * D; encoder_out (slots, frames, C); kv (2C, C): the rows of Wk, then those of Wv;
// kv_bias (2C) f32, whose part for keys shifts all scores of a row alike and has no effect. Every
// row sees the keys [0, length) of its sequence; none is an Error, on the CPU. On a GPU a row's
// bits depend neither on the other rows nor on their number. Source: the weight absorption of
// DeepSeek-V2 (2024), section 2.1.
void absorbed_attention(Context& ctx, Tensor out, Tensor q, Tensor encoder_out, const Matrix& kv,
                        Tensor kv_bias, int64_t heads, const BatchLayout& rows, float scale);

// Latent attention. Keys and values of all H heads are products of one latent row per token: L
// channels, and R with rotary positions, which are part of every key. The cache keeps that row. The
// products are absorbed into query and result (head_linear), so that attention() sees one key head
// of L + R channels, whose values are its first L. Source: DeepSeek-V2 2024, section 2.1.

// Per head h of a row: y_h = W_h x_h. w: H matrices (N, K) of one shape. x's rows (T, H * X): head
// h's K channels begin at column h * X + x.first; y's rows (T, H * Y): its N channels begin at
// h * Y + y.first. As linear() of each head's rows.
void head_linear(Context& ctx, const Columns& y, const Columns& x, const std::vector<Matrix>& w);

// The step between the products and attention(). Norms the first L channels of each row of `latent`
// (T, L + R) and turns its last R, in place, then writes the row to the cache (blocks, 1, S, L + R)
// as append_cache does. Turns the last R channels of each head of q (T, H * (N + R)) and writes
// them to the last R of each head of absorbed (T, H * (L + R)). norm: rms, weight (L); position (T)
// i32. Here channel 2 i turns with channel 2 i + 1.
void latent_append(Context& ctx, Tensor cache, Tensor absorbed, Tensor q, Tensor latent,
                   int64_t heads, Tensor position, const Rope& rope, const Norm& norm,
                   const BatchLayout& rows);

// Whether a GPU computes absorbed_attention(): q, out and encoder_out of one 16-bit type, kv of
// that type, int8 or fp8, D 64, C a multiple of 128 up to 1024, or 1280, frames up to 1536.
inline bool can_absorb(Dtype activations, Dtype weights, int64_t channels, int64_t heads,
                       int64_t frames) {
    const bool types = (activations == Dtype::f16 || activations == Dtype::bf16) &&
                       (weights == activations || has_row_scales(weights));
    const bool size = channels == 1280 || (channels % 128 == 0 && channels <= 1024);
    return types && size && channels == 64 * heads && heads > 0 && frames > 0 && frames <= 1536;
}

}  // namespace hark
