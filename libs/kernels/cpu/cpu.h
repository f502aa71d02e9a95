// The inner loops of the CPU kernels, on plain pointers: compiled once per kind of processor and
// chosen at run time. No file outside libs/kernels/cpu depends on the processor.
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"
#include "kernels/attention/cpu/integer_attention.h"
#include "kernels/linear/cpu/split_products.h"
#include "kernels/ops.h"
#include "kernels/quant/cpu/byte_products.h"
#include "kernels/quant/cpu/panel_products.h"

namespace hark {

// The prefetch distance of rows of weights in bytes, into the second cache; a core's stream runs on
// into the next rows.
inline constexpr int64_t kBytesAhead = 8192;

// Rows of weights as stored, (n, size); products() takes f32, f16 and bf16.
struct StoredRows {
    const void* values = nullptr;
    Dtype dtype = Dtype::f32;
    int64_t size = 0;
};

// Size of what block_products() unpacks at a time: bytes of 32 weights, and rows.
inline constexpr int kUnpackedPiece = 128;
inline constexpr int64_t kUnpackedRows = 4;

// Activations for quantised weights: x = scales[row] * values. No value is -32768.
struct IntegerInputs {
    const int16_t* values = nullptr;  // (t, size)
    const float* scales = nullptr;    // (t)
    const float* sums = nullptr;      // (t, size / s): over the s values that share a scale
};

// A range of keys of one head, for one query. Sums over keys are cut at fixed places and merged in
// order, so they depend neither on the number of threads nor on the batch.
// Key j of the run is row p % block_size of block blocks[p / block_size], p = first + j; `keys` and
// `values` are the head's rows in the cache's first block, and blocks are block_stride values
// apart.
struct AttentionRun {
    const float* query = nullptr;
    const void *keys = nullptr, *values = nullptr;  // of `dtype`
    Dtype dtype = Dtype::f32;
    const int32_t* blocks = nullptr;
    int64_t block_size = 0, block_stride = 0;
    int64_t first = 0, count = 0, head = 0;
    float scale = 1;
    float soft_cap = 0;  // 0: none
};

// Result of a range: out[d] = sum of exp(score - top) * value[d], total = sum of exp(score - top).
struct AttentionSum {
    float* out = nullptr;  // (head)
    float top = 0, total = 0;
};

// Statistics of a row. Its mean is mean + error: one float cannot hold the digits of a large mean.
// inverse = 1 / sqrt(variance + eps).
struct NormStatistics {
    float mean, error, inverse;
};

// A step of AdamW: g is multiplied by `gradient`; p = p * keep - rate * m / (sqrt(v) * root + eps).
struct AdamWFactors {
    float gradient, beta1, beta2, rate, keep, root, eps;
};

struct CpuKernels {
    const char* name;
    // The processor has products of bf16 or s8: oneDNN's are fast, and those of s8 do not saturate.
    bool has_bf16, has_int8;
    const ByteKernels* bytes;                   // or none
    const PanelKernels* panels;                 // or none
    const TileKernels* tiles;                   // or none; with them, bytes
    const IntegerAttention* integer_attention;  // or none
    const SplitKernels* splits;                 // or none

    // y[t * ldy + n - begin] = sum over k of x[t * ldx + k] * w[n][k], for n in [begin, end) and
    // t in [0, t_size). The order of a sum depends neither on t_size nor on the range.
    void (*products)(float* y, int64_t ldy, const float* x, int64_t ldx, int64_t t_size,
                     const StoredRows& w, int64_t begin, int64_t end);
    // sums[t * ldy + n] = sum over k of x[t * ldx + k] * w[n * size + k], for n in [0, count) and t
    // in [0, t_size); exact if it fits 32 bits. Rows of x are padded with zeros to a multiple of
    // 32.
    void (*products_int8)(int32_t* sums, int64_t ldy, const int16_t* x, int64_t ldx, int64_t t_size,
                          const int8_t* w, int64_t size, int64_t count);
    // y[t * ldy + n] = sum over k of x[t][k] * w[n][k], for n in [0, count) and t in [0, t_size); w
    // (count, size) in blocks. The order of a sum depends neither on t_size nor on count. scratch,
    // for several rows of x: kUnpackedRows * size / 32 * kUnpackedPiece bytes.
    void (*block_products)(float* y, int64_t ldy, const IntegerInputs& x, int64_t t_size,
                           const uint8_t* blocks, Dtype dtype, int64_t size, int64_t count,
                           uint8_t* scratch);
    // y = residual + activation(product + bias), n values. bias and residual may be null; y may be
    // product or residual.
    void (*epilogue)(float* y, const float* product, const float* bias, const float* residual,
                     int64_t n, Activation activation);
    void (*widen)(float* to, const void* from, Dtype dtype, int64_t n);   // from f32, f16, bf16
    void (*narrow)(void* to, Dtype dtype, const float* from, int64_t n);  // to nearest even
    void (*widen_int8)(float* to, const int8_t* from, float scale, int64_t n);
    void (*dequantize)(float* to, const void* blocks, Dtype dtype, int64_t n);  // whole blocks
    // to = from / scale, rounded to nearest; returns scale = the largest magnitude / 127.
    float (*quantize)(int8_t* to, const float* from, int64_t n);
    // The same to 16 bits, with `range` instead of 127.
    float (*quantize_wide)(int16_t* to, const float* from, int64_t n, int32_t range);
    // epilogue of product = sums * (scale * scales[i])
    void (*finish_int8)(float* y, const int32_t* sums, float scale, const float* scales,
                        const float* bias, const float* residual, int64_t n, Activation activation);
    void (*layer_norm)(float* y, const float* x, const float* w, const float* b, int64_t n,
                       float eps);
    // y = x * w / sqrt(mean(x^2) + eps)
    void (*rms_norm)(float* y, const float* x, const float* w, int64_t n, float eps);
    // y = activation(gate) * up
    void (*gated)(float* y, const float* gate, const float* up, int64_t n, Activation activation);
    void (*add)(float* y, const float* a, const float* b, int64_t n);
    void (*multiply)(float* y, const float* x, float factor, int64_t n);
    // x = exp(scale * (x - its maximum)); returns the sum. scale > 0.
    float (*softmax)(float* x, int64_t n, float scale);
    // x = cap * tanh(scale * x / cap)
    void (*soft_cap)(float* x, int64_t n, float scale, float cap);
    // log(sum of exp(x)); -infinity if all of x are, or if n is 0.
    double (*log_sum_exp)(const float* x, int64_t n);

    float (*largest)(const float* x, int64_t n);  // n > 0
    float (*dot)(const float* a, const float* b, int64_t n);

    // dx = dy * the activation's slope at x
    void (*activate_backward)(float* dx, const float* dy, const float* x, int64_t n,
                              Activation activation);
    // dx += the gradient of a row x; returns the row's statistics for norm_gradients.
    NormStatistics (*layer_norm_backward)(float* dx, const float* dy, const float* x,
                                          const float* w, int64_t n, float eps);
    // dw, db (n) += the gradients of `count` rows, `stride` apart, with the statistics `rows`.
    void (*norm_gradients)(float* dw, float* db, const float* dy, const float* x,
                           const NormStatistics* rows, int64_t count, int64_t stride, int64_t n);
    // dx += the gradient of a row x of rms_norm; returns 1 / sqrt(mean(x^2) + eps).
    float (*rms_norm_backward)(float* dx, const float* dy, const float* x, const float* w,
                               int64_t n, float eps);
    // dw (n) += the gradients of `count` rows, `stride` apart, with rms_norm_backward()'s factors.
    void (*rms_norm_gradients)(float* dw, const float* dy, const float* x, const float* factors,
                               int64_t count, int64_t stride, int64_t n);
    // sums (n) += `count` rows, `stride` apart, in their order
    void (*add_rows)(float* sums, const float* x, int64_t count, int64_t stride, int64_t n);
    // ds = p * (ds - delta) * scale
    void (*scores_backward)(float* ds, const float* p, float delta, float scale, int64_t n);
    double (*sum_of_squares)(const float* x, int64_t n);
    void (*adamw)(float* p, float* m, float* v, const float* g, int64_t n, const AdamWFactors& by);

    // scores: scratch of run.count floats.
    void (*attend)(AttentionSum& sum, const AttentionRun& run, float* scores);
    void (*combine)(AttentionSum& sum, const AttentionSum& run, int64_t head);

    // c (m, n) = a (m, k) b. b is packed in panels: packed[n / panel][k][n % panel]. Rows of c have
    // room for n rounded up to whole panels. The first k of b's packed_k rows are used. Or c += a b
    // if `adds`.
    int64_t panel;
    int64_t rows_at_once;  // m is best a multiple of it
    void (*pack)(float* packed, const void* b, Dtype dtype, int64_t k, int64_t n);  // b (k, n)
    // b (n, k), its rows ldb values apart. Meanwhile the next panel's rows are requested.
    void (*pack_transposed)(float* packed, const void* b, int64_t ldb, Dtype dtype, int64_t k,
                            int64_t n);
    void (*multiply_packed)(float* c, int64_t ldc, const float* a, int64_t lda, const float* packed,
                            int64_t m, int64_t n, int64_t k, int64_t packed_k, bool adds);
};

// The best of those that this processor runs, or those of use_cpu_kernels().
const CpuKernels& cpu_kernels();

// For tests, between two calls of kernels.
void use_cpu_kernels(const CpuKernels& kernels);

// All that this processor runs, the plain ones first: for tests.
std::span<const CpuKernels* const> all_cpu_kernels();

}  // namespace hark
