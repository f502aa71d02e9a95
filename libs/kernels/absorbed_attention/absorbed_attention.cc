#include "kernels/batch_layout.h"
#include "kernels/checks.h"
#include "kernels/ops.h"
#include "kernels/ops_table.h"

namespace hark {
namespace {

void check_absorbed_attention(const Tensor& out, const Tensor& q, const Tensor& encoder_out,
                              const Matrix& kv, const Tensor& kv_bias, int64_t heads,
                              const BatchLayout& rows) {
    constexpr const char* kOp = "absorbed_attention";
    require(is_float(q.dtype), kOp, ": expected q in f32, f16 or bf16, found ", q);
    check_tensor(kOp, "encoder output", encoder_out, q.dtype, {-1, -1, -1});
    const int64_t c = encoder_out.dim(2);
    require(heads > 0 && c % heads == 0, kOp, ": expected heads that divide ", c, ", found ",
            heads);
    check_tensor(kOp, "q", q, q.dtype, {-1, c});
    check_tensor(kOp, "out", out, q.dtype, {q.dim(0), c});
    check_matrix(kOp, kv);
    require(kv.values.dim(0) == 2 * c && kv.values.dim(1) == c, kOp, ": expected kv (", 2 * c, ", ",
            c, "), found ", kv.values);
    check_tensor(kOp, "kv_bias", kv_bias, Dtype::f32, {2 * c});
    check_batch_layout(kOp, rows, q.dim(0), encoder_out.dim(1));
    check_one_block(kOp, rows);
}

}  // namespace

// The definition: keys and values of each sequence as products, then attention over them.
void absorbed_attention(Context& ctx, Tensor out, Tensor q, Tensor encoder_out, const Matrix& kv,
                        Tensor kv_bias, int64_t heads, const BatchLayout& rows, float scale) {
    check_absorbed_attention(out, q, encoder_out, kv, kv_bias, heads, rows);
    if (ctx.on_cuda())
        return cuda_ops().absorbed_attention(ctx, out, q, encoder_out, kv, kv_bias, heads, rows,
                                             scale);
    check_batch_layout_values("absorbed_attention", rows, q.dim(0), encoder_out.dim(0),
                              encoder_out.dim(1));
    const int64_t frames = encoder_out.dim(1), c = encoder_out.dim(2);
    const Arena::Scope scope(ctx.arena);
    Tensor both = ctx.arena.tensor(Dtype::f32, {frames, 2 * c});
    Tensor keys = ctx.arena.tensor(Dtype::f32, {1, heads, frames, c / heads});
    Tensor values = ctx.arena.tensor(Dtype::f32, {1, heads, frames, c / heads});
    const int32_t* start = rows.query_start.as<int32_t>();
    for (int64_t b = 0; b < rows.sequences(); ++b) {
        const int64_t slot = rows.block_table.as<int32_t>()[b], queries = start[b + 1] - start[b];
        if (queries == 0) continue;
        linear(ctx, both, encoder_out.slice(slot, slot + 1).reshaped({frames, c}), kv,
               {.bias = kv_bias});
        HostBatchLayout all, own;
        all.add(0, frames, frames);
        own.add(0, queries, rows.length.as<int32_t>()[b]);
        append_cache(ctx, keys, values, both, 0, all.view());
        attention(ctx, out.slice(start[b], start[b + 1]), q.slice(start[b], start[b + 1]), keys,
                  values, own.view(), {.scale = scale});
    }
}

}  // namespace hark
