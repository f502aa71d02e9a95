// linear on the GPU: the choice between the plain units (simt.cuh), the matrix units
// (small_m_mma.cuh) and cuBLASLt (gemm.cuh).
#include "kernels/linear/fp8_rows.cuh"
#include "kernels/linear/gated_m.cuh"
#include "kernels/linear/gemm.cuh"
#include "kernels/linear/medium_m.cuh"
#include "kernels/linear/simt.cuh"
#include "kernels/linear/small_m_row.cuh"
#include "kernels/linear/streamed_m.cuh"
#include "kernels/quant/quantized.cuh"

namespace hark::cuda {
namespace {

// Rows from which converted blocks are multiplied faster than as they are stored; on Hopper.
constexpr int64_t kManyRowsOfBlocks = 129, kManyRowsOfBlocksOnHopper = 257;
// Rows from which several warps share x.
constexpr int64_t kTiledRowsOfBlocks = 9;

// Number of rows from which gemm() computes the product, if rows need not be batch-invariant. It is
// smaller for 16-bit weights, which gemm() does not convert.
int64_t gemm_rows(const Context& ctx, const Tensor& x, const Matrix& w) {
    if (ctx.batch_invariant) return kManyRowsOnGpu;
    if (is_quantized(w.values.dtype))
        return has_quantized_wgmma() ? kManyRowsOfBlocksOnHopper : kManyRowsOfBlocks;
    return is_16_bit(w.values.dtype) || multiplies_fp8(x, w) ? 33 : 192;
}

template <class X, class W>
void launch_values(Context& ctx, const SmallMArgs& args, const X* x, const W* w) {
    // 16 bytes of weights per lane, unless the matrix units take such products.
    constexpr bool kTaken = sizeof(X) == 2 && (std::is_same_v<X, W> || sizeof(W) == 1);
    constexpr int kVector = kTaken ? 1 : 16 / sizeof(W);
    const bool aligned =
        reinterpret_cast<uintptr_t>(x) % 16 == 0 && reinterpret_cast<uintptr_t>(w) % 16 == 0;
    if (aligned && args.k % kVector == 0 && args.k * sizeof(X) % 16 == 0) {
        launch_simt<SimtRows<W, kVector>>(ctx, args, x, w, args.k);
    } else {
        launch_simt<SimtRows<W, 1>>(ctx, args, x, w, args.k);
    }
}

void simt_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then) {
    const SmallMArgs args(y, x, w, then);
    with_float_type(x.dtype, [&](auto x_type) {
        const auto* xs = static_cast<const decltype(x_type)*>(x.data);
        if (w.values.dtype == Dtype::i8) {
            return launch_values(ctx, args, xs, w.values.as<int8_t>());
        }
        if (w.values.dtype == Dtype::fp8) {
            return launch_values(ctx, args, xs, w.values.as<fp8_t>());
        }
        with_float_type(w.values.dtype, [&](auto w_type) {
            launch_values(ctx, args, xs, static_cast<const decltype(w_type)*>(w.values.data));
        });
    });
}

// The kernels of a product: those of many rows, then those of few.
enum class Way {
    streamed,
    medium,
    gated,
    gemm,
    tiled_by_wgmma,
    tiled,
    small_quantized,
    small,
    simt
};

Way way_of(const Context& ctx, const Tensor& y, const Tensor& x, const Matrix& w,
           const Epilogue& then, const LinearFusion& with) {
    const bool is_in_blocks = is_quantized(w.values.dtype);
    if (x.rows() >= gemm_rows(ctx, x, w)) {
        if (ctx.batch_invariant) return Way::gemm;
        if (!with.append && has_streamed_m_product(y, x, w, then)) return Way::streamed;
        if (has_medium_m_product(y, x, w, then, with.gated)) return Way::medium;
        if (with.gated && has_gated_m_product(y, x, w, then)) return Way::gated;
        return Way::gemm;
    }
    if (is_in_blocks && !ctx.batch_invariant && x.rows() >= kTiledRowsOfBlocks)
        return has_quantized_wgmma() ? Way::tiled_by_wgmma : Way::tiled;
    if (is_in_blocks) return Way::small_quantized;
    return has_small_m_product(x, w) ? Way::small : Way::simt;
}

// Whether that way's kernel computes f(gate) * up, or leaves it to the rows' own.
bool gates(Way way, const Tensor& x, const Matrix& w) {
    return way == Way::streamed || way == Way::medium || way == Way::gated ||
           way == Way::tiled_by_wgmma || gates_rows(x, w);
}

// Whether the norm is computed by the product's kernel, or by the one that rounds x to fp8.
bool fuses_norm(const Context& ctx, Way way, const Tensor& x, const Matrix& w, const Epilogue& then,
                const LinearFusion& with) {
    const Norm& norm = with.norm;
    if (way <= Way::gemm) return rounds_x(x, w, then) && norms_fp8_rows(x, norm);
    if (norm.kind == NormKind::rms)
        return !with.append &&
               (norms_one_row(x, w, norm) || norms_quantized_row(ctx, x, w, norm, with.gated));
    return norms_row(x, w, norm) && !(with.gated && takes_one_row(x, w));
}

}  // namespace

void linear(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
            const LinearFusion& with) {
    const auto& [norm, append, gated] = with;
    enter(ctx, {&y, &x, &w.values, &w.scales, &then.bias, &then.residual});
    const int64_t rows = x.rows();
    if (rows == 0 || w.values.dim(0) == 0) return;
    const Way way = way_of(ctx, y, x, w, then, with);
    if (norm.weight && !fuses_norm(ctx, way, x, w, gated ? Epilogue{then.bias} : then, with)) {
        const Arena::Scope scope(ctx.arena);
        Tensor normed = ctx.arena.tensor(x.dtype, {rows, x.dim(-1)});
        if (norm.kind == NormKind::rms)
            cuda::rms_norm(ctx, normed, x, norm.weight, norm.eps);
        else
            cuda::layer_norm(ctx, normed, x, norm.weight, norm.bias, norm.eps);
        return cuda::linear(ctx, y, normed, w, then, {.append = append, .gated = gated});
    }
    if (gated && !gates(way, x, w)) {
        const Arena::Scope scope(ctx.arena);
        const Tensor halves = ctx.arena.tensor(y.dtype, {rows, w.values.dim(0)});
        cuda::linear(ctx, halves, x, w, {.bias = then.bias}, {.norm = norm});
        return cuda::gated_activation(ctx, y, {halves, 0}, {halves, y.dim(-1)}, then.activation);
    }
    if (append && !appends_rows(x, w, *append)) {
        cuda::linear(ctx, y, x, w, then, {.norm = norm});
        return cuda::append_cache(ctx, append->keys, append->values, y, append->first,
                                  append->rows);
    }
    enter(ctx, {&norm.weight, &norm.bias});
    if (append)
        enter(ctx,
              {&append->keys, &append->values, &append->rows.block_table, &append->rows.length});
    if (way == Way::tiled_by_wgmma || way == Way::tiled)
        require(!append && (way == Way::tiled_by_wgmma || !gated),
                "internal error: these tiles of quantised weights do not fuse that");
    switch (way) {
        case Way::streamed:
            return streamed_m_product(ctx, y, x, w, then, norm, gated);
        case Way::medium:
            return medium_m_product(ctx, y, x, w, then, gated);
        case Way::gated:
            return gated_m_product(ctx, y, x, w, then.activation);
        case Way::gemm:
            return gemm(ctx, y, x, w, then, norm);
        case Way::tiled_by_wgmma:
            return tiled_quantized_wgmma(ctx, y, x, w, then, with);
        case Way::tiled:
            return tiled_quantized(ctx, y, x, w, then);
        case Way::small_quantized:
            return small_m_quantized(ctx, y, x, w, then, with);
        case Way::small:
            return small_m_product(ctx, y, x, w, then, with);
        case Way::simt:
            return simt_product(ctx, y, x, w, then);
    }
}

}  // namespace hark::cuda
