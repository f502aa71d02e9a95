#include "kernels/kv_cache/block_table.h"
#include "kernels/kv_cache/cache_rows.h"
#include "kernels/kv_cache/new_tokens.h"
#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/ops_table.h"
#include "kernels/rope/turns.h"

namespace hark {
namespace {

constexpr const char* kLatentAppend = "latent_append";

void check_latent_append(const Tensor& cache, const Tensor& absorbed, const Tensor& q,
                         const Tensor& latent, int64_t heads, const Tensor& position,
                         const Rope& rope, const Norm& norm, const BatchLayout& rows) {
    check_cache(kLatentAppend, cache);
    const int64_t count = q.dim(0), width = cache.dim(3);
    require(cache.dim(1) == 1, kLatentAppend, ": expected a cache of one head, found ", cache);
    check_rope(kLatentAppend, rope, width);
    const int64_t rotary = 2 * rope.frequencies.dim(0);
    check_rms_norm(kLatentAppend, "norm", norm, width - rotary);
    require(is_float(q.dtype), kLatentAppend, ": expected q in f32, f16 or bf16, found ", q);
    check_tensor(kLatentAppend, "latent", latent, q.dtype, {count, width});
    check_tensor(kLatentAppend, "absorbed", absorbed, q.dtype, {count, heads * width});
    check_tensor(kLatentAppend, "q", q, q.dtype, {count, -1});
    require(heads > 0 && q.dim(1) % heads == 0 && q.dim(1) / heads >= rotary, kLatentAppend,
            ": expected q (T, ", heads, " heads of ", rotary, " channels or more), found ", q);
    check_tensor(kLatentAppend, "position", position, Dtype::i32, {count});
    check_batch_layout(kLatentAppend, rows, count, cache.dim(2));
}

// Turns channel 2 i with channel 2 i + 1, for `half` pairs; turns: half cosines, then sines.
void turn_pairs(float* to, const float* from, const float* turns, int64_t half) {
    for (int64_t i = 0; i < half; ++i) {
        const float even = from[2 * i], odd = from[2 * i + 1], c = turns[i], s = turns[i + half];
        to[2 * i] = even * c - odd * s;
        to[2 * i + 1] = odd * c + even * s;
    }
}

}  // namespace

void latent_append(Context& ctx, Tensor cache, Tensor absorbed, Tensor q, Tensor latent,
                   int64_t heads, Tensor position, const Rope& rope, const Norm& norm,
                   const BatchLayout& rows) {
    check_latent_append(cache, absorbed, q, latent, heads, position, rope, norm, rows);
    if (ctx.on_cuda())
        return cuda_ops().latent_append(ctx, cache, absorbed, q, latent, heads, position, rope,
                                        norm, rows);
    const int64_t count = q.dim(0), width = cache.dim(3), head = q.dim(1) / heads;
    const int64_t half = rope.frequencies.dim(0), channels = width - 2 * half;
    check_batch_layout_values(kLatentAppend, rows, count, cache.dim(0), cache.dim(2), 1);
    const Arena::Scope scope(ctx.arena);
    float* turns = ctx.arena.tensor(Dtype::f32, {count, 2 * half}).as<float>();
    fill_turns(turns, position.as<int32_t>(), count, rope);
    const BlockTable table(rows, cache);
    float *to = absorbed.as<float>(), *queries = q.as<float>(), *rows_of = latent.as<float>();
    each_new_token(ctx, kLatentAppend, rows, heads * head, [&](int64_t t, int64_t b, int64_t p) {
        const float* by = turns + t * 2 * half;
        float* row = rows_of + t * width;
        cpu_kernels().rms_norm(row, row, norm.weight.as<float>(), channels, norm.eps);
        turn_pairs(row + channels, row + channels, by, half);
        store_cache_row(cache, table.row(b, p, 1, 0), row);
        for (int64_t h = 0; h < heads; ++h)
            turn_pairs(to + (t * heads + h + 1) * width - 2 * half,
                       queries + (t * heads + h + 1) * head - 2 * half, by, half);
    });
}

}  // namespace hark
