#include "kernels/linear/product.h"

#include <algorithm>
#include <numeric>

#include "kernels/cpu/cpu.h"
#include "kernels/linear/onednn.h"
#include "kernels/quant/block_values.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

constexpr int64_t kFewColumns = 16;         // outputs per task; 16 x 16 sums on the stack
constexpr int64_t kBlockWeights = 1 << 20;  // converted at a time
constexpr int64_t kPanelRows = 512;         // of x, whose sums stay in the second cache
// The epilogue of one panel alone takes 17% of the time at K = 768, of four together 7%.
constexpr int64_t kPanelsAtOnce = 4;

struct Pointers {
    const float* bias;
    const float* residual;
    Activation activation;
};

Pointers pointers_of(const Epilogue& then) {
    return {static_cast<const float*>(then.bias.data),
            static_cast<const float*>(then.residual.data), then.activation};
}

const float* at(const float* base, int64_t offset) { return base ? base + offset : nullptr; }

// Threads that in_pieces() uses.
int64_t worker_count(const Context& ctx, int64_t n_size) {
    return std::min<int64_t>(ctx.threads, (n_size + kFewColumns - 1) / kFewColumns);
}

// y's columns, kFewColumns at a time: products(worker, sums, begin, n) writes the sums of columns
// [begin, begin + n) of all rows, kFewColumns apart; then the epilogue. Workers have numbers below
// worker_count().
template <class Products>
void in_pieces(Context& ctx, float* y, int64_t t_size, int64_t n_size, const Pointers& then,
               const Products& products) {
    const CpuKernels& cpu = cpu_kernels();
    const int64_t pieces = (n_size + kFewColumns - 1) / kFewColumns;
    const int64_t workers = worker_count(ctx, n_size);
    parallel_for(ctx.threads, workers, [&](int64_t worker) {
        const int64_t last = std::min((worker + 1) * pieces / workers * kFewColumns, n_size);
        int64_t begin = worker * pieces / workers * kFewColumns;
        for (; begin < last; begin += kFewColumns) {
            const int64_t n = std::min(kFewColumns, last - begin);
            float sums[kFewRowsOnCpu * kFewColumns];
            products(worker, sums, begin, n);
            for (int64_t t = 0; t < t_size; ++t) {
                const int64_t place = t * n_size + begin;
                cpu.epilogue(y + place, sums + t * kFewColumns, at(then.bias, begin),
                             at(then.residual, place), n, then.activation);
            }
        }
    });
}

// Up to kFewRowsOnCpu rows, directly from the stored weights; each weight is read once.
void small_m(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
             const Pointers& then) {
    const int64_t k_size = w.values.dim(1);
    const StoredRows rows = {w.values.data, w.values.dtype, k_size};
    in_pieces(
        ctx, y, t_size, w.values.dim(0), then, [&](int64_t, float* sums, int64_t begin, int64_t n) {
            cpu_kernels().products(sums, kFewColumns, x, k_size, t_size, rows, begin, begin + n);
        });
}

// Rows of x as 16-bit integers for quantised weights; without the sums of groups.
IntegerInputs wide_inputs(Context& ctx, int threads, const float* x, int64_t t_size,
                          int64_t k_size) {
    auto* values = static_cast<int16_t*>(ctx.arena.tensor(Dtype::u8, {t_size, k_size, 2}).data);
    float* scales = ctx.arena.tensor(Dtype::f32, {t_size}).as<float>();
    parallel_for(threads, t_size, [&](int64_t t) {
        scales[t] =
            cpu_kernels().quantize_wide(values + t * k_size, x + t * k_size, k_size, kWideRange);
    });
    return {values, scales, nullptr};
}

// Sums of the values that share a scale: (t, k_size / shared).
const float* sums_of_groups(Context& ctx, int threads, const int16_t* values, int64_t t_size,
                            int64_t k_size, int64_t shared) {
    const int64_t groups = k_size / shared;
    float* sums = ctx.arena.tensor(Dtype::f32, {t_size, groups}).as<float>();
    parallel_for(threads, t_size, [&](int64_t t) {
        const int16_t* from = values + t * k_size;
        for (int64_t i = 0; i < groups; ++i, from += shared)
            sums[t * groups + i] =
                static_cast<float>(std::accumulate(from, from + shared, int32_t{0}));
    });
    return sums;
}

// Both bytes of the integers, for processors with byte products.
ByteInputs byte_inputs(Context& ctx, const IntegerInputs& from, int64_t t_size, int64_t k_size,
                       Dtype dtype) {
    const auto take = [&](Dtype type, int64_t n) { return ctx.arena.tensor(type, {t_size, n}); };
    const ByteInputs inputs = {take(Dtype::i8, k_size).as<int8_t>(),
                               take(Dtype::i8, k_size).as<int8_t>(),
                               take(Dtype::i32, k_size / 4).as<int32_t>(),
                               take(Dtype::f32, k_size / 32).as<float>(), from.scales};
    for (int64_t t = 0; t < t_size; ++t)
        cpu_kernels().bytes->split(inputs, t, from.values + t * k_size, dtype, k_size);
    return inputs;
}

// The same from quantised blocks, in integers as below. The sums of a block's products are exact,
// so activations use 16 bits.
void small_m_quantized(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                       const Pointers& then) {
    const Arena::Scope scope(ctx.arena);
    const CpuKernels& cpu = cpu_kernels();
    const Dtype dtype = w.values.dtype;
    const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1);
    const int64_t row_size = static_cast<int64_t>(row_bytes(dtype, k_size));
    const auto* blocks = static_cast<const uint8_t*>(w.values.data);
    IntegerInputs inputs = wide_inputs(ctx, 1, x, t_size, k_size);
    if (cpu.bytes && cpu.bytes->has(dtype, k_size)) {
        const ByteInputs bytes = byte_inputs(ctx, inputs, t_size, k_size, dtype);
        return in_pieces(ctx, y, t_size, n_size, then,
                         [&](int64_t, float* sums, int64_t begin, int64_t n) {
                             cpu.bytes->products(sums, kFewColumns, bytes, t_size,
                                                 blocks + begin * row_size, dtype, k_size, n);
                         });
    }
    inputs.sums = sums_of_groups(ctx, 1, inputs.values, t_size, k_size, values_that_share(dtype));
    const int64_t room = kUnpackedRows * k_size / 32 * kUnpackedPiece;
    auto* scratch = ctx.arena.tensor(Dtype::u8, {worker_count(ctx, n_size), room}).as<uint8_t>();
    in_pieces(ctx, y, t_size, n_size, then,
              [&](int64_t worker, float* sums, int64_t begin, int64_t n) {
                  cpu.block_products(sums, kFewColumns, inputs, t_size, blocks + begin * row_size,
                                     dtype, k_size, n, scratch + worker * room);
              });
}

// The same from int8 weights, in integers: converting the weights to floats would take longer than
// reading them. Activations get as many bits as the sums of a row leave room for, over 13 at 1,536
// columns, so only the rounding of the weights is visible.
void small_m_int8(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                  const Pointers& then) {
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
void few_rows(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
              const Pointers& then) {
    if (w.values.dtype == Dtype::i8) return small_m_int8(ctx, y, x, t_size, w, then);
    if (is_quantized(w.values.dtype)) return small_m_quantized(ctx, y, x, t_size, w, then);
    small_m(ctx, y, x, t_size, w, then);
}

// Rows [begin, end) of the weights as f32: the weights themselves, or converted into `scratch`.
const float* rows_as_f32(Context& ctx, const Matrix& w, int64_t begin, int64_t end,
                         float* scratch) {
    const int64_t k_size = w.values.dim(1);
    if (w.values.dtype == Dtype::f32) return static_cast<float*>(w.values.data) + begin * k_size;
    const CpuKernels& cpu = cpu_kernels();
    const auto* bytes = static_cast<const std::byte*>(w.values.data);
    const auto* scales = static_cast<const float*>(w.scales.data);
    const int64_t row_size = static_cast<int64_t>(row_bytes(w.values.dtype, k_size));
    parallel_for(ctx.threads, end - begin, [&](int64_t row) {
        const std::byte* from = bytes + (begin + row) * row_size;
        float* to = scratch + row * k_size;
        if (w.values.dtype == Dtype::i8)
            cpu.widen_int8(to, reinterpret_cast<const int8_t*>(from), scales[begin + row], k_size);
        else if (is_quantized(w.values.dtype))
            cpu.dequantize(to, from, w.values.dtype, k_size);
        else
            cpu.widen(to, from, w.values.dtype, k_size);
    });
    return scratch;
}

// Rows of weights that are not f32 are converted this many at a time.
int64_t rows_at_once(const Matrix& w) {
    const int64_t n_size = w.values.dim(0);
    return w.values.dtype == Dtype::f32
               ? n_size
               : std::clamp<int64_t>(kBlockWeights / w.values.dim(1), 1, n_size);
}

// Scratch for the converted rows.
float* scratch_for(Context& ctx, const Matrix& w) {
    if (w.values.dtype == Dtype::f32) return nullptr;
    return ctx.arena.tensor(Dtype::f32, {rows_at_once(w), w.values.dim(1)}).as<float>();
}

// Finishes y's columns [begin, begin + n) from their products.
void finish(Context& ctx, float* y, int64_t ldy, const float* product, int64_t ld_product,
            int64_t rows, int64_t n, int64_t begin, const Pointers& then) {
    if (product == y + begin && !then.bias && !then.residual && then.activation == Activation::none)
        return;
    const CpuKernels& cpu = cpu_kernels();
    parallel_for(ctx.threads, rows, [&](int64_t t) {
        const int64_t place = t * ldy + begin;
        cpu.epilogue(y + place, product + t * ld_product, at(then.bias, begin),
                     at(then.residual, place), n, then.activation);
    });
}

void product_f32(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                 Pointers then) {
    const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1), block = rows_at_once(w);
    float* scratch = scratch_for(ctx, w);
    // A residual that is y itself is added by the product, unless an activation comes between.
    const bool aliased = then.residual == y;
    const bool accumulate = aliased && then.activation == Activation::none;
    if (accumulate) then.residual = nullptr;
    float* apart = nullptr;
    if (aliased && !accumulate) apart = ctx.arena.tensor(Dtype::f32, {t_size, block}).as<float>();
    for (int64_t begin = 0; begin < n_size; begin += block) {
        const int64_t n = std::min(block, n_size - begin);
        const float* weights = rows_as_f32(ctx, w, begin, begin + n, scratch);
        float* product = apart ? apart : y + begin;
        const int64_t ld_product = apart ? block : n_size;
        onednn::multiply(ctx.threads, product, ld_product, {x, k_size}, {weights, k_size, true},
                         t_size, n, k_size, accumulate);
        finish(ctx, y, n_size, product, ld_product, t_size, n, begin, then);
    }
}

// Many rows of quantised weights, kPanelsAtOnce panels at a time. A panel is multiplied by at most
// kPanelRows rows of x, or fewer if there are more threads than panels.
void gemm_quantized(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                    const Pointers& then) {
    const CpuKernels& cpu = cpu_kernels();
    const Dtype dtype = w.values.dtype;
    const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1);
    const int64_t row_size = static_cast<int64_t>(row_bytes(dtype, k_size));
    const int64_t shared = values_that_share(dtype), groups = k_size / shared;
    const auto* blocks = static_cast<const uint8_t*>(w.values.data);
    IntegerInputs inputs = wide_inputs(ctx, ctx.threads, x, t_size, k_size);
    if (has_minima(dtype))
        inputs.sums = sums_of_groups(ctx, ctx.threads, inputs.values, t_size, k_size, shared);
    const int64_t panels = (n_size + kPanelOutputs - 1) / kPanelOutputs;
    const int64_t cuts =
        std::max((t_size + kPanelRows - 1) / kPanelRows, (ctx.threads + panels - 1) / panels);
    const int64_t rows_at_once = (t_size + cuts - 1) / cuts;
    const int64_t tasks = (t_size + rows_at_once - 1) / rows_at_once * panels,
                  workers = std::min<int64_t>(ctx.threads, tasks);
    auto* scratch = ctx.arena.tensor(Dtype::u8, {workers, kPanelBytes}).as<uint8_t>();
    constexpr int64_t kWidth = kPanelsAtOnce * kPanelOutputs;
    float* sums = ctx.arena.tensor(Dtype::f32, {workers, rows_at_once, kWidth}).as<float>();
    parallel_for(ctx.threads, workers, [&](int64_t worker) {
        float* product = sums + worker * rows_at_once * kWidth;
        const int64_t last = (worker + 1) * tasks / workers;
        for (int64_t i = worker * tasks / workers; i < last;) {
            const int64_t t = i / panels * rows_at_once, begin = i % panels * kPanelOutputs;
            const int64_t rows = std::min(rows_at_once, t_size - t);
            const int64_t count = std::min({kPanelsAtOnce, last - i, panels - i % panels});
            const IntegerInputs from = {inputs.values + t * k_size, inputs.scales + t,
                                        at(inputs.sums, t * groups)};
            for (int64_t n = 0; n < count * kPanelOutputs; n += kPanelOutputs)
                cpu.panels->products(
                    product + n, kWidth, from, rows, blocks + (begin + n) * row_size, dtype, k_size,
                    std::min(kPanelOutputs, n_size - begin - n), scratch + worker * kPanelBytes);
            for (int64_t row = 0; row < rows; ++row) {
                const int64_t place = (t + row) * n_size + begin;
                cpu.epilogue(y + place, product + row * kWidth, at(then.bias, begin),
                             at(then.residual, place),
                             std::min(count * kPanelOutputs, n_size - begin), then.activation);
            }
            i += count;
        }
    });
}

// With bf16 instructions: activations are rounded to bf16, sums are f32.
void gemm_bf16(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
               const Pointers& then) {
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
               const Pointers& then) {
    const CpuKernels& cpu = cpu_kernels();
    const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1);
    const int64_t block = std::min(n_size, std::max<int64_t>(4 * kBlockWeights / t_size, 64));
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

}  // namespace

void cpu_product(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                 const Epilogue& epilogue) {
    if (t_size == 0) return;
    const Pointers then = pointers_of(epilogue);
    if (t_size <= kFewRowsOnCpu || ctx.few_row_products) {
        const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1);
        for (int64_t t = 0; t < t_size; t += kFewRowsOnCpu)
            few_rows(ctx, y + t * n_size, x + t * k_size, std::min(kFewRowsOnCpu, t_size - t), w,
                     {then.bias, at(then.residual, t * n_size), then.activation});
        return;
    }
    const Arena::Scope scope(ctx.arena);
    const CpuKernels& cpu = cpu_kernels();
    if (w.values.dtype == Dtype::bf16 && cpu.has_bf16 && !w.exact_x)
        return gemm_bf16(ctx, y, x, t_size, w, then);
    if (w.values.dtype == Dtype::i8 && cpu.has_int8) return gemm_int8(ctx, y, x, t_size, w, then);
    if (is_quantized(w.values.dtype) && cpu.panels)
        return gemm_quantized(ctx, y, x, t_size, w, then);
    product_f32(ctx, y, x, t_size, w, then);
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
