#include "kernels/rope/rope_append.h"

#include "kernels/kv_cache/block_table.h"
#include "kernels/kv_cache/cache_rows.h"
#include "kernels/kv_cache/new_tokens.h"
#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/ops_table.h"
#include "kernels/rope/turns.h"

namespace hark {
namespace {

constexpr const char* kRopeAppend = "rope_append";

void check_norm(const char* name, const Norm& norm, int64_t d) {
    if (norm.weight) check_rms_norm(kRopeAppend, name, norm, d);
}

// Norms the heads of one row, then turns them, in place. turns: of the row, or null.
void norm_and_turn(float* x, int64_t heads, int64_t d, const Norm& norm, const float* turns,
                   int64_t half) {
    for (int64_t h = 0; h < heads; ++h, x += d) {
        if (norm.weight) cpu_kernels().rms_norm(x, x, norm.weight.as<float>(), d, norm.eps);
        if (turns) turn(x, turns, half);
    }
}

}  // namespace

void check_rope_append(const Tensor& keys, const Tensor& values, const Columns& q, const Columns& k,
                       const Columns& v, int64_t heads, const Tensor& position, const Rope& rope,
                       const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows) {
    check_caches(kRopeAppend, keys, values);
    const int64_t kv_heads = keys.dim(1), d = keys.dim(3), count = q.rows.dim(0);
    check_columns(kRopeAppend, "q", q, count, heads * d, q.rows.dtype);
    check_columns(kRopeAppend, "k", k, count, kv_heads * d, q.rows.dtype);
    check_columns(kRopeAppend, "v", v, count, kv_heads * d, q.rows.dtype);
    check_tensor(kRopeAppend, "position", position, Dtype::i32, {count});
    if (rope.frequencies) check_rope(kRopeAppend, rope, d);
    check_norm("q_norm", q_norm, d);
    check_norm("k_norm", k_norm, d);
    check_batch_layout(kRopeAppend, rows, count, keys.dim(2));
}

void rope_append(Context& ctx, Tensor keys, Tensor values, const Columns& q, const Columns& k,
                 const Columns& v, int64_t heads, Tensor position, const Rope& rope,
                 const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows) {
    check_rope_append(keys, values, q, k, v, heads, position, rope, q_norm, k_norm, rows);
    if (ctx.on_cuda())
        return cuda_ops().rope_append(ctx, keys, values, q, k, v, heads, position, rope, q_norm,
                                      k_norm, rows);
    const int64_t kv_heads = keys.dim(1), capacity = keys.dim(2), d = keys.dim(3);
    const int64_t count = q.rows.dim(0), half = rope.frequencies ? rope.frequencies.dim(0) : 0;
    check_batch_layout_values(kRopeAppend, rows, count, keys.dim(0), capacity, 1);
    const Arena::Scope scope(ctx.arena);
    float* turns = ctx.arena.tensor(Dtype::f32, {count, 2 * half}).as<float>();
    fill_turns(turns, position.as<int32_t>(), count, rope);
    const BlockTable table(rows, keys);
    for (const Columns* columns : {&q, &k, &v})
        columns->rows.as<float>();  // throws here, not below
    const auto at = [](const Columns& columns, int64_t t) {
        return static_cast<float*>(columns.rows.data) + t * columns.rows.dim(1) + columns.first;
    };
    const auto store = [&](const Tensor& cache, const float* from, int64_t b, int64_t place) {
        for (int64_t h = 0; h < kv_heads; ++h)
            store_cache_row(cache, table.row(b, place, kv_heads, h), from + h * d);
    };
    const int64_t work = (heads + kv_heads) * d;
    each_new_token(ctx, kRopeAppend, rows, work, [&](int64_t t, int64_t b, int64_t p) {
        const float* turn_by = half > 0 ? turns + t * 2 * half : nullptr;
        norm_and_turn(at(q, t), heads, d, q_norm, turn_by, half);
        norm_and_turn(at(k, t), kv_heads, d, k_norm, turn_by, half);
        store(keys, at(k, t), b, p);
        store(values, at(v, t), b, p);
    });
}

}  // namespace hark
