#include "kernels/attention/attention_checks.h"
#include "kernels/checks.h"
#include "kernels/ops_table.h"

namespace hark {
namespace {

void check_packed_attention(const Tensor& out, const Tensor& q_k_v, int64_t heads,
                            const BatchLayout& rows) {
    constexpr const char* kOp = "packed_attention";
    require(out.rank >= 1 && is_float(out.dtype) && heads > 0 && out.dim(-1) % heads == 0, kOp,
            ": expected out (T, ", heads, " * D) in f32, f16 or bf16, found ", out);
    check_tensor(kOp, "q_k_v", q_k_v, out.dtype, {out.rows(), 3 * out.dim(-1)});
    require(
        rows.max_queries * rows.sequences() == out.rows() && rows.max_length == rows.max_queries,
        kOp, ": expected sequences of as many rows and keys each, ", out.rows(),
        " rows in all, found ", rows.sequences(), " of up to ", rows.max_queries, " rows and ",
        rows.max_length, " keys");
    check_one_block(kOp, rows);
    require(!rows.kv_ready, kOp, ": keys are of these rows, so they cannot be ready");
}

}  // namespace

void packed_attention(Context& ctx, Tensor out, Tensor q_k_v, int64_t heads,
                      const BatchLayout& rows, const AttentionOptions& options) {
    check_packed_attention(out, q_k_v, heads, rows);
    if (ctx.on_cuda()) return cuda_ops().packed_attention(ctx, out, q_k_v, heads, rows, options);
    const Arena::Scope scope(ctx.arena);
    const Tensor keys = packed_cache(ctx, q_k_v, heads, rows);
    const Tensor values = packed_cache(ctx, q_k_v, heads, rows);
    append_cache(ctx, keys, values, q_k_v, out.dim(-1), rows);
    attention(ctx, out, q_k_v, keys, values, rows, options);
}

}  // namespace hark
