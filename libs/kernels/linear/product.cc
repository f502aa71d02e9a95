#include "kernels/linear/product.h"

#include <algorithm>

#include "kernels/checks.h"
#include "kernels/linear/onednn.h"
#include "kernels/linear/panels.h"
#include "kernels/linear/quantized_product.h"
#include "kernels/linear/split_product.h"
#include "kernels/quant/fp8_rows.h"

namespace hark {
namespace {

constexpr int64_t kBlockWeights = 1 << 22;  // converted at a time, at most
// Columns of a panel of weights that is packed: 128 KB in the second cache.
constexpr int64_t kPackedDepth = 512;
// Up to 32 rows, bf16 parts of the weights cost what they save (docs/kernels/log/cpu.md).
constexpr int64_t kMostUnsplitRows = 32;

// Up to kFewRowsOnCpu rows, directly from the stored weights; each weight is read once.
void small_m(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
             const EpiloguePointers& then) {
    const int64_t k_size = w.values.dim(1);
    const StoredRows rows = {w.values.data, w.values.dtype, k_size};
    in_pieces(
        ctx, y, t_size, w.values.dim(0), then, [&](int64_t, float* sums, int64_t begin, int64_t n) {
            cpu_kernels().products(sums, kFewColumns, x, k_size, t_size, rows, begin, begin + n);
        });
}

// The same from int8 weights, in integers: converting the weights to floats would take longer than
// reading them. Activations get as many bits as the sums of a row leave room for, over 13 at 1,536
// columns, so only the rounding of the weights is visible.
void small_m_int8(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                  const EpiloguePointers& then) {
    const Arena::Scope scope(ctx.arena);
    const CpuKernels& cpu = cpu_kernels();
    const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1);
    const int64_t padded = (k_size + 31) / 32 * 32;
    const int64_t range = std::clamp<int64_t>(INT32_MAX / (127 * k_size), 1, INT16_MAX);
    const auto* weights = static_cast<const int8_t*>(w.values.data);
    const auto* scales = static_cast<const float*>(w.scales.data);
    auto* inputs = static_cast<int16_t*>(ctx.arena.tensor(Dtype::u8, {t_size, padded, 2}).data);
    float row_scales[kFewRowsOnCpu];
    for (int64_t t = 0; t < t_size; ++t) {
        int16_t* row = inputs + t * padded;
        row_scales[t] = cpu.quantize_wide(row, x + t * k_size, k_size, static_cast<int32_t>(range));
        std::fill(row + k_size, row + padded, int16_t{0});
    }
    const int64_t pieces = (n_size + kFewColumns - 1) / kFewColumns;
    parallel_for(ctx.threads, pieces, [&](int64_t piece) {
        const int64_t begin = piece * kFewColumns, n = std::min(kFewColumns, n_size - begin);
        int32_t sums[kFewRowsOnCpu * kFewColumns];
        cpu.products_int8(sums, kFewColumns, inputs, padded, t_size, weights + begin * k_size,
                          k_size, n);
        for (int64_t t = 0; t < t_size; ++t) {
            const int64_t place = t * n_size + begin;
            cpu.finish_int8(y + place, sums + t * kFewColumns, row_scales[t], scales + begin,
                            at(then.bias, begin), at(then.residual, place), n, then.activation);
        }
    });
}

// Up to kFewRowsOnCpu rows.
void small_m_product(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                     const EpiloguePointers& then) {
    if (w.values.dtype == Dtype::i8) return small_m_int8(ctx, y, x, t_size, w, then);
    if (is_quantized(w.values.dtype)) return few_quantized_rows(ctx, y, x, t_size, w, then);
    small_m(ctx, y, x, t_size, w, then);
}

const std::byte* stored_row(const Matrix& w, int64_t row) {
    return static_cast<const std::byte*>(w.values.data) +
           row * static_cast<int64_t>(row_bytes(w.values.dtype, w.values.dim(1)));
}

void row_as_f32(float* to, const Matrix& w, int64_t row) {
    const CpuKernels& cpu = cpu_kernels();
    const std::byte* from = stored_row(w, row);
    const int64_t k_size = w.values.dim(1);
    if (w.values.dtype == Dtype::i8)
        cpu.widen_int8(to, reinterpret_cast<const int8_t*>(from), w.scales.as<float>()[row],
                       k_size);
    else if (is_quantized(w.values.dtype))
        cpu.dequantize(to, from, w.values.dtype, k_size);
    else
        cpu.widen(to, from, w.values.dtype, k_size);
}

// Rows [begin, end) of the weights as f32: the weights themselves, or converted into `scratch`.
const float* rows_as_f32(Context& ctx, const Matrix& w, int64_t begin, int64_t end,
                         float* scratch) {
    const int64_t k_size = w.values.dim(1);
    if (w.values.dtype == Dtype::f32) return static_cast<float*>(w.values.data) + begin * k_size;
    parallel_for(ctx.threads, end - begin,
                 [&](int64_t row) { row_as_f32(scratch + row * k_size, w, begin + row); });
    return scratch;
}

// Rows of weights that are not f32 are converted this many at a time: pieces of one size, since
// oneDNN is slow with few rows.
int64_t rows_at_once(const Matrix& w) {
    const int64_t n_size = w.values.dim(0), size = n_size * w.values.dim(1);
    if (w.values.dtype == Dtype::f32) return n_size;
    const int64_t pieces = std::min((size + kBlockWeights - 1) / kBlockWeights, n_size);
    return (n_size + pieces - 1) / pieces;
}

// Scratch for the converted rows.
float* scratch_for(Context& ctx, const Matrix& w) {
    if (w.values.dtype == Dtype::f32) return nullptr;
    return ctx.arena.tensor(Dtype::f32, {rows_at_once(w), w.values.dim(1)}).as<float>();
}

// Finishes y's columns [begin, begin + n) from their products.
void finish(Context& ctx, float* y, int64_t ldy, const float* product, int64_t ld_product,
            int64_t rows, int64_t n, int64_t begin, const EpiloguePointers& then) {
    if (product == y + begin && !then.bias && !then.residual && then.activation == Activation::none)
        return;
    const CpuKernels& cpu = cpu_kernels();
    parallel_for(ctx.threads, rows, [&](int64_t t) {
        const int64_t place = t * ldy + begin;
        cpu.epilogue(y + place, product + t * ld_product, at(then.bias, begin),
                     at(then.residual, place), n, then.activation);
    });
}

// In float32: panels of weights are widened and packed. Other numbers than f16 and bf16 are
// converted first, so that a panel has whole blocks.
void product_f32(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                 const EpiloguePointers& then) {
    const Arena::Scope scope(ctx.arena);
    const CpuKernels& cpu = cpu_kernels();
    const int64_t k_size = w.values.dim(1), outputs = cpu.panel;
    const bool converts = !is_float(w.values.dtype);
    const Dtype dtype = converts ? Dtype::f32 : w.values.dtype;
    const int64_t floats = outputs * (kPackedDepth + (converts ? k_size : 0));
    const PanelSizes sizes = {outputs, kPanelRows, cpu.rows_at_once,
                              floats * int64_t{sizeof(float)}};
    in_panels(ctx, y, t_size, w.values.dim(0), sizes, then,
              [&](float* sums, int64_t ld, int64_t t, int64_t t_count, int64_t row, int64_t n,
                  uint8_t* scratch) {
                  auto* packed = reinterpret_cast<float*>(scratch);
                  float* converted = packed + outputs * kPackedDepth;
                  for (int64_t i = 0; converts && i < n; ++i)
                      row_as_f32(converted + i * k_size, w, row + i);
                  const auto* rows =
                      converts ? reinterpret_cast<const std::byte*>(converted) : stored_row(w, row);
                  for (int64_t k = 0; k < k_size; k += kPackedDepth) {
                      const int64_t depth = std::min(kPackedDepth, k_size - k);
                      cpu.pack_transposed(packed, rows + row_bytes(dtype, k), k_size, dtype, depth,
                                          n);
                      cpu.multiply_packed(sums, ld, x + t * k_size + k, k_size, packed, t_count, n,
                                          depth, depth, k > 0);
                  }
              });
}

// The definition of products by fp8, which tools leave to a GPU: of f32 and the widened weights.
Matrix widened_fp8_rows(Context& ctx, const Matrix& w) {
    const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1);
    const Tensor wide = ctx.arena.tensor(Dtype::f32, {n_size, k_size});
    parallel_for(ctx.threads, n_size, [&](int64_t n) {
        widen_fp8(wide.as<float>() + n * k_size, w.values.as<fp8_t>() + n * k_size,
                  w.scales.as<float>()[n], k_size);
    });
    return {wide, {}};
}

// With bf16 instructions: activations are rounded to bf16, sums are f32.
void gemm_bf16(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
               const EpiloguePointers& then) {
    const CpuKernels& cpu = cpu_kernels();
    const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1);
    const auto* weights = static_cast<const bf16_t*>(w.values.data);
    bf16_t* inputs = ctx.arena.tensor(Dtype::bf16, {t_size, k_size}).as<bf16_t>();
    parallel_for(ctx.threads, t_size, [&](int64_t t) {
        cpu.narrow(inputs + t * k_size, Dtype::bf16, x + t * k_size, k_size);
    });
    float* apart = nullptr;
    if (then.residual == y) apart = ctx.arena.tensor(Dtype::f32, {t_size, n_size}).as<float>();
    float* product = apart ? apart : y;
    onednn::multiply(ctx.threads, product, n_size, inputs, k_size, weights, t_size, n_size, k_size);
    finish(ctx, y, n_size, product, n_size, t_size, n_size, 0, then);
}

// With VNNI instructions: every row of activations is quantised by its own largest value.
void gemm_int8(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
               const EpiloguePointers& then) {
    const CpuKernels& cpu = cpu_kernels();
    const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1);
    const int64_t block = std::min(n_size, std::max<int64_t>(kBlockWeights / t_size, 64));
    const auto* weights = static_cast<const int8_t*>(w.values.data);
    const auto* scales = static_cast<const float*>(w.scales.data);
    int8_t* inputs = ctx.arena.tensor(Dtype::i8, {t_size, k_size}).as<int8_t>();
    float* row_scales = ctx.arena.tensor(Dtype::f32, {t_size}).as<float>();
    int32_t* sums = ctx.arena.tensor(Dtype::i32, {t_size, block}).as<int32_t>();
    parallel_for(ctx.threads, t_size, [&](int64_t t) {
        row_scales[t] = cpu.quantize(inputs + t * k_size, x + t * k_size, k_size);
    });
    for (int64_t begin = 0; begin < n_size; begin += block) {
        const int64_t n = std::min(block, n_size - begin);
        onednn::multiply(ctx.threads, sums, block, inputs, k_size, weights + begin * k_size, t_size,
                         n, k_size);
        parallel_for(ctx.threads, t_size, [&](int64_t t) {
            cpu.finish_int8(y + t * n_size + begin, sums + t * block, row_scales[t], scales + begin,
                            at(then.bias, begin), at(then.residual, t * n_size + begin), n,
                            then.activation);
        });
    }
}

bool in_bf16(const Matrix& w) {
    return w.values.dtype == Dtype::bf16 && cpu_kernels().has_bf16 && !w.exact_x;
}

bool in_int8(const Matrix& w) { return w.values.dtype == Dtype::i8 && cpu_kernels().has_int8; }

// The product of this many rows that has panels (panels.h), or null.
auto panel_product(const Context& ctx, int64_t t_size, const Matrix& w) -> decltype(&product_f32) {
    const CpuKernels& cpu = cpu_kernels();
    if (in_quantized_tiles(ctx, t_size, w)) return many_quantized_rows;
    if (t_size <= kFewRowsOnCpu || ctx.few_row_products || w.values.dtype == Dtype::fp8 ||
        in_bf16(w) || in_int8(w))
        return nullptr;
    if (cpu.splits && w.values.dtype != Dtype::i8 && t_size > kMostUnsplitRows)
        return split_product;
    return is_quantized(w.values.dtype) && cpu.panels ? many_quantized_rows : product_f32;
}

}  // namespace

void cpu_product(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                 const Epilogue& epilogue) {
    if (t_size == 0) return;
    if (w.values.dtype == Dtype::fp8) {
        const Arena::Scope scope(ctx.arena);
        return cpu_product(ctx, y, x, t_size, widened_fp8_rows(ctx, w), epilogue);
    }
    const EpiloguePointers then = pointers_of(epilogue);
    if (const auto product = panel_product(ctx, t_size, w))
        return product(ctx, y, x, t_size, w, then);
    if (t_size <= kFewRowsOnCpu || ctx.few_row_products) {
        const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1);
        for (int64_t t = 0; t < t_size; t += kFewRowsOnCpu)
            small_m_product(ctx, y + t * n_size, x + t * k_size,
                            std::min(kFewRowsOnCpu, t_size - t), w,
                            {then.bias, at(then.residual, t * n_size), then.activation});
        return;
    }
    const Arena::Scope scope(ctx.arena);
    if (in_bf16(w)) return gemm_bf16(ctx, y, x, t_size, w, then);
    gemm_int8(ctx, y, x, t_size, w, then);
}

void cpu_gated_product(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                       const Epilogue& then) {
    if (t_size == 0) return;
    if (const auto product = panel_product(ctx, t_size, w)) {
        EpiloguePointers gated = pointers_of(then);
        gated.gated = true;
        return product(ctx, y, x, t_size, w, gated);
    }
    const Arena::Scope scope(ctx.arena);
    const int64_t n = w.values.dim(0) / 2;
    const Tensor halves = ctx.arena.tensor(Dtype::f32, {t_size, 2 * n});
    cpu_product(ctx, halves.as<float>(), x, t_size, w, {.bias = then.bias});
    gated_activation(ctx, Tensor(y, Dtype::f32, {t_size, n}), {halves, 0}, {halves, n},
                     then.activation);
}

void cpu_product_backward(Context& ctx, float* dx, const float* dy, int64_t rows, const Matrix& w) {
    const Arena::Scope scope(ctx.arena);
    const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1), block = rows_at_once(w);
    float* scratch = scratch_for(ctx, w);
    for (int64_t begin = 0; begin < n_size; begin += block) {
        const int64_t n = std::min(block, n_size - begin);
        const float* weights = rows_as_f32(ctx, w, begin, begin + n, scratch);
        onednn::multiply(ctx.threads, dx, k_size, {dy + begin, n_size}, {weights, k_size}, rows,
                         k_size, n, begin > 0);
    }
}

void cpu_add_rows(Context& ctx, float* sums, const float* x, int64_t rows, int64_t n_size) {
    parallel_for(ctx.threads, (n_size + kColumnsAtOnce - 1) / kColumnsAtOnce, [&](int64_t i) {
        const int64_t first = i * kColumnsAtOnce;
        cpu_kernels().add_rows(sums + first, x + first, rows, n_size,
                               std::min(kColumnsAtOnce, n_size - first));
    });
}

}  // namespace hark
