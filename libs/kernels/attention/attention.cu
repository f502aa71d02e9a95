// attention on the GPU: its limits, and the choice of a kernel.
#include <bit>
#include <cmath>

#include "kernels/attention/attention_checks.h"
#include "kernels/attention/attention_kernels.cuh"
#include "kernels/attention/decode_new_rows.cuh"
#include "kernels/batch_layout.h"
#include "kernels/kv_cache/cache_rows.cuh"

namespace hark::cuda {
namespace {

constexpr int64_t kMostGridZ = 65535;

bool fits_tiles(const Tensor& out, const Tensor& q, const Tensor& keys) {
    return keys.dim(3) % 8 == 0 && keys.dim(3) <= kMostTiledHead && is_16_bit(q.dtype) &&
           (q.dtype == keys.dtype || keys.dtype == Dtype::q8_0) && q.dim(-1) % 8 == 0 &&
           reinterpret_cast<uintptr_t>(q.data) % 16 == 0 &&
           reinterpret_cast<uintptr_t>(out.data) % 8 == 0;
}

// Whether the kernels for few queries take the call, if its type of cache has one.
bool is_few(const AttentionArgs& args) {
    return args.d % 8 == 0 && args.max_queries <= kFewQueries &&
           args.sequences * args.max_queries <= kMostGridZ;
}

// Whether a key's block is found by a shift.
bool has_shift(const AttentionArgs& args) {
    return args.blocks == 1 || std::has_single_bit(static_cast<uint64_t>(args.capacity));
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

// The arguments of a call that is not in parts; causes an Error if it cannot be computed.
AttentionArgs args_of(Context& ctx, const Tensor& out, const Tensor& q, const Tensor& keys,
                      const Tensor& values, const BatchLayout& rows,
                      const AttentionOptions& options) {
    check_head(ctx, keys.dim(3), kMostHeadChannels);
    require(reinterpret_cast<uintptr_t>(keys.data) % 16 == 0 &&
                reinterpret_cast<uintptr_t>(values.data) % 16 == 0,
            "attention: expected keys and values aligned to 16 bytes");
    enter(ctx, {&out, &q, &keys, &values, &rows.query_start, &rows.block_table, &rows.length,
                &options.sinks});
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
    if (args.blocks > 1 && has_shift(args))
        args.shift = std::countr_zero(static_cast<uint64_t>(args.capacity));
    return args;
}

// Whether attention_decode_grouped norms and turns these rows too.
bool fits_new_rows(const Context& ctx, const AttentionArgs& args, const Columns& k,
                   const Columns& v, const Rope& rope) {
    const auto is_aligned = [&](const Columns& columns) {
        return columns.first % 8 == 0 && columns.rows.dim(1) % 8 == 0 &&
               reinterpret_cast<uintptr_t>(columns.rows.data) % 16 == 0;
    };
    return args.causal && is_few(args) && fits_groups(args) &&
           (gains_by_new_rows(args) || has_streamed_attention(ctx, args)) && rope.frequencies &&
           2 * rope.frequencies.dim(0) == args.d && is_aligned(k) && is_aligned(v);
}

// Query heads that share keys; with `fresh` rows rope_append first.
void attend_groups(Context& ctx, const AttentionArgs& args, const NewRowArgs* fresh) {
    has_streamed_attention(ctx, args) ? attention_decode_streamed(ctx, args, fresh)
                                      : attention_decode_grouped(ctx, args, fresh);
}

// attention with args_of() these tensors.
void attend(Context& ctx, AttentionArgs args, const Tensor& out, const Tensor& q,
            const Tensor& keys, const Tensor& values) {
    if (!has_shift(args)) return attention_simt(ctx, args);
    const bool can_dequantize = args.blocks == 1;  // all of a sequence's keys, into one block
    if (is_few(args)) {
        fits_groups(args) ? attend_groups(ctx, args, nullptr) : attention_decode_split_k(ctx, args);
    } else if (fits_tiles(out, q, keys) && (keys.dtype != Dtype::q8_0 || can_dequantize)) {
        const Arena::Scope scope(ctx.arena);
        if (keys.dtype == Dtype::q8_0) {
            // The tiles read 16-bit numbers.
            args.capacity = args.max_length;
            args.cache_type = q.dtype;
            args.keys = dequantized(ctx, keys, args);
            args.values = dequantized(ctx, values, args);
        }
        // Of keys in blocks the engine's tests of independent rows have seen the latter alone.
        const bool is_plain = !args.has_options() && (args.blocks == 1 || !ctx.batch_invariant);
        if (!is_plain || !attention_flash_wgmma(ctx, args)) attention_flash_mma(ctx, args);
    } else {
        attention_simt(ctx, args);
    }
}

// packed_attention with keys and values where they are; false if no kernel does that.
bool attend_packed(Context& ctx, const Tensor& out, const Tensor& q_k_v, int64_t heads,
                   const BatchLayout& rows, const AttentionOptions& options) {
    const int64_t c = out.dim(-1);
    if (!is_16_bit(q_k_v.dtype) || c % 8 != 0) return false;
    if (reinterpret_cast<uintptr_t>(q_k_v.data) % 16 != 0) return false;
    // Not a cache: its shape, and where the first head's columns begin.
    const auto columns = [&](int64_t first) {
        auto* const data = static_cast<std::byte*>(q_k_v.data) + first * 2;
        return Tensor(data, q_k_v.dtype, {rows.sequences(), heads, rows.max_queries, c / heads},
                      q_k_v.device);
    };
    const Tensor keys = columns(c);
    AttentionArgs args = args_of(ctx, out, q_k_v, keys, columns(2 * c), rows, options);
    args.packed = true;
    return !is_few(args) && !args.has_options() && fits_tiles(out, q_k_v, keys) &&
           attention_flash_wgmma(ctx, args);
}

}  // namespace

void attention(Context& ctx, Tensor out, Tensor q, Tensor keys, Tensor values,
               const BatchLayout& rows, const AttentionOptions& options) {
    if (rows.few > 0) {
        for (const BatchLayout& part : parts_of(rows))
            cuda::attention(ctx, out, q, keys, values, part, options);
        return;
    }
    const AttentionArgs args = args_of(ctx, out, q, keys, values, rows, options);
    if (rows.sequences() > 0 && rows.max_queries > 0) attend(ctx, args, out, q, keys, values);
}

void packed_attention(Context& ctx, Tensor out, Tensor q_k_v, int64_t heads,
                      const BatchLayout& rows, const AttentionOptions& options) {
    if (rows.sequences() == 0 || rows.max_queries <= 0) return;
    if (attend_packed(ctx, out, q_k_v, heads, rows, options)) return;
    const Arena::Scope scope(ctx.arena);
    const Tensor keys = packed_cache(ctx, q_k_v, heads, rows);
    const Tensor values = packed_cache(ctx, q_k_v, heads, rows);
    cuda::append_cache(ctx, keys, values, q_k_v, out.dim(-1), rows);
    cuda::attention(ctx, out, q_k_v, keys, values, rows, options);
}

void rope_attention(Context& ctx, Tensor out, Tensor keys, Tensor values, const Columns& q,
                    const Columns& k, const Columns& v, Tensor position, const Rope& rope,
                    const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows,
                    const AttentionOptions& options) {
    if (rows.few > 0) {
        for (const BatchLayout& part : parts_of(rows))
            cuda::rope_attention(ctx, out, keys, values, q, k, v, position, rope, q_norm, k_norm,
                                 part, options);
        return;
    }
    const int64_t heads = out.dim(-1) / keys.dim(3);
    const AttentionArgs args = args_of(ctx, out, q.rows, keys, values, rows, options);
    if (rows.sequences() == 0 || rows.max_queries <= 0) return;
    if (!has_shift(args) || !fits_new_rows(ctx, args, k, v, rope)) {
        cuda::rope_append(ctx, keys, values, q, k, v, heads, position, rope, q_norm, k_norm, rows);
        return attend(ctx, args, out, q.rows, keys, values);
    }
    enter(ctx, {&k.rows, &v.rows, &position, &rope.frequencies, &q_norm.weight, &k_norm.weight});
    const auto from = [](const Columns& columns) {
        return static_cast<const uint16_t*>(columns.rows.data) + columns.first;
    };
    const NewRowArgs fresh = {
        rope_args(keys, values, q, k, v, heads, position, rope, q_norm, k_norm, rows), from(q),
        from(k), from(v)};
    attend_groups(ctx, args, &fresh);
}

}  // namespace hark::cuda
