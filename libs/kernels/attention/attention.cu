// attention on the GPU: its limits, and the choice of a kernel.
#include <bit>
#include <cmath>

#include "kernels/attention/attention_kernels.cuh"
#include "kernels/batch_layout.h"
#include "kernels/cache/cache_rows.cuh"

namespace hark::cuda {
namespace {

constexpr int64_t kMostGridZ = 65535;

bool fits_tiles(const Tensor& out, const Tensor& q, const Tensor& keys) {
    return keys.dim(3) % 8 == 0 && keys.dim(3) <= kMostTiledHead && is_16_bit(q.dtype) &&
           (q.dtype == keys.dtype || keys.dtype == Dtype::q8_0) && q.dim(-1) % 8 == 0 &&
           reinterpret_cast<uintptr_t>(q.data) % 16 == 0 &&
           reinterpret_cast<uintptr_t>(out.data) % 8 == 0;
}

// Whether attention_decode_grouped takes the call.
bool fits_groups(const AttentionArgs& args) {
    const int group = args.heads / args.kv_heads;
    return group > 1 && group <= kMostGroupedHeads && is_16_bit(args.q_type) &&
           args.q_type == args.cache_type && (args.d == 64 || args.d == 128) &&
           args.q_stride % 8 == 0 && reinterpret_cast<uintptr_t>(args.q) % 16 == 0 &&
           (args.blocks == 1 || args.capacity % kGroupedBlock == 0);
}

// The first positions of a cache of q8_0, as many as args has, in the type of args.
const void* dequantized(Context& ctx, const Tensor& cache, const AttentionArgs& args) {
    const Tensor numbers = ctx.arena.tensor(
        args.cache_type, {cache.dim(0), cache.dim(1), args.capacity, cache.dim(3)});
    dequantize_cache(ctx, numbers, cache);
    return numbers.data;
}

}  // namespace

void attention(Context& ctx, Tensor out, Tensor q, Tensor keys, Tensor values,
               const BatchLayout& rows, const AttentionOptions& options) {
    if (rows.few > 0) {
        for (const BatchLayout& part : parts_of(rows))
            cuda::attention(ctx, out, q, keys, values, part, options);
        return;
    }
    check_head(ctx, keys.dim(3), kMostHeadChannels);
    require(reinterpret_cast<uintptr_t>(keys.data) % 16 == 0 &&
                reinterpret_cast<uintptr_t>(values.data) % 16 == 0,
            "attention: expected keys and values aligned to 16 bytes");
    enter(ctx, {&out, &q, &keys, &values, &rows.query_start, &rows.block_table, &rows.length,
                &options.sinks});
    if (rows.sequences() == 0 || rows.max_queries <= 0) return;
    AttentionArgs args{};
    args.out = out.data;
    args.q = q.data;
    args.keys = keys.data;
    args.values = values.data;
    args.out_type = out.dtype;
    args.q_type = q.dtype;
    args.cache_type = keys.dtype;
    args.query_start = rows.query_start.as<int32_t>();
    args.slot = rows.block_table.as<int32_t>();
    args.length = rows.length.as<int32_t>();
    args.rows = q.rows();
    args.q_stride = q.dim(-1);
    args.slots = keys.dim(0);
    args.capacity = keys.dim(2);
    args.d = static_cast<int>(keys.dim(3));
    args.heads = static_cast<int>(out.dim(-1) / args.d);
    args.kv_heads = static_cast<int>(keys.dim(1));
    args.scale_log2 = options.scale * static_cast<float>(M_LOG2E);
    args.causal = options.causal;
    args.kv_ready = rows.kv_ready;
    args.sequences = static_cast<int>(rows.sequences());
    args.max_queries = rows.max_queries;
    args.max_length = rows.max_length;
    // A window that no sequence exceeds needs no options; which sequences there are may decide that
    // unless bits must not depend on them.
    const int64_t longest = ctx.batch_invariant ? args.capacity * rows.blocks() : rows.max_length;
    args.window = static_cast<int>(options.window < longest ? options.window : 0);
    args.soft_cap = options.soft_cap;
    args.sinks = options.sinks ? options.sinks.as<float>() : nullptr;
    args.blocks = static_cast<int>(rows.blocks());
    const auto block = static_cast<uint64_t>(args.capacity);
    if (args.blocks > 1 && !std::has_single_bit(block)) return attention_simt(ctx, args);
    args.shift = args.blocks > 1 ? std::countr_zero(block) : 0;
    const bool can_dequantize = args.blocks == 1;  // all of a sequence's keys, into one block
    if (args.d % 8 == 0 && rows.max_queries <= kFewQueries &&
        args.sequences * rows.max_queries <= kMostGridZ) {
        fits_groups(args) ? attention_decode_grouped(ctx, args)
                          : attention_decode_split_k(ctx, args);
    } else if (fits_tiles(out, q, keys) && (keys.dtype != Dtype::q8_0 || can_dequantize)) {
        const Arena::Scope scope(ctx.arena);
        if (keys.dtype == Dtype::q8_0) {
            // The tiles read 16-bit numbers.
            args.capacity = args.max_length;
            args.cache_type = q.dtype;
            args.keys = dequantized(ctx, keys, args);
            args.values = dequantized(ctx, values, args);
        }
        const bool is_plain = !args.has_options() && args.blocks == 1;
        if (!is_plain || !attention_flash_wgmma(ctx, args)) attention_flash_mma(ctx, args);
    } else {
        attention_simt(ctx, args);
    }
}

}  // namespace hark::cuda
