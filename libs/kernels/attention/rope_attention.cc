#include "core/error.h"
#include "kernels/attention/attention_checks.h"
#include "kernels/ops_table.h"
#include "kernels/rope/rope_append.h"

namespace hark {

void rope_attention(Context& ctx, Tensor out, Tensor keys, Tensor values, const Columns& q,
                    const Columns& k, const Columns& v, Tensor position, const Rope& rope,
                    const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows,
                    const AttentionOptions& options) {
    check_attention(out, q.rows, keys, values, rows, options);
    require(q.first == 0, "rope_attention: expected queries from column 0 on, found ", q.first);
    const int64_t heads = out.dim(-1) / keys.dim(3);
    if (!ctx.on_cuda()) {
        rope_append(ctx, keys, values, q, k, v, heads, position, rope, q_norm, k_norm, rows);
        return attention(ctx, out, q.rows, keys, values, rows, options);
    }
    check_rope_append(keys, values, q, k, v, heads, position, rope, q_norm, k_norm, rows);
    cuda_ops().rope_attention(ctx, out, keys, values, q, k, v, position, rope, q_norm, k_norm, rows,
                              options);
}

}  // namespace hark
