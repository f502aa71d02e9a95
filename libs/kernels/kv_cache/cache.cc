#include <cstring>

#include "core/half.h"
#include "kernels/kv_cache/block_table.h"
#include "kernels/kv_cache/cache_rows.h"
#include "kernels/kv_cache/new_tokens.h"
#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/ops.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

// The scale of a block with a value that is not finite is NaN; one beyond f16 is infinite.
void store_q8_0(std::byte* to, const float* from, int64_t n) {
    const BlockSize block = block_size(Dtype::q8_0);
    for (int64_t i = 0; i < n; i += block.values, to += block.bytes) {
        const float scale = cpu_kernels().quantize(reinterpret_cast<int8_t*>(to + sizeof(f16_t)),
                                                   from + i, block.values);
        const f16_t stored = to_f16(scale);
        std::memcpy(to, &stored, sizeof stored);
    }
}

}  // namespace

void store_cache_row(const Tensor& cache, int64_t row, const float* from) {
    const int64_t channels = cache.dim(3);
    std::byte* to =
        static_cast<std::byte*>(cache.data) + row * cache_row_bytes(cache.dtype, channels);
    if (cache.dtype == Dtype::q8_0) return store_q8_0(to, from, channels);
    cpu_kernels().narrow(to, cache.dtype, from, channels);
}

void append_cache(Context& ctx, Tensor keys, Tensor values, Tensor x, int64_t first,
                  const BatchLayout& rows) {
    check_append("append_cache", keys, values, x, first, rows);
    if (ctx.on_cuda()) return cuda_ops().append_cache(ctx, keys, values, x, first, rows);
    const int64_t heads = keys.dim(1), capacity = keys.dim(2), size = keys.dim(3);
    const int64_t width = x.dim(-1);
    check_batch_layout_values("append_cache", rows, x.rows(), keys.dim(0), capacity, 1);
    const BlockTable table(rows, keys);
    const float* from = x.as<float>() + first;
    const int64_t work = 2 * heads * size;
    each_new_token(ctx, "append_cache", rows, work, [&](int64_t t, int64_t b, int64_t p) {
        const float* row = from + t * width;
        for (const Tensor& cache : {keys, values}) {
            for (int64_t h = 0; h < heads; ++h, row += size)
                store_cache_row(cache, table.row(b, p, heads, h), row);
        }
    });
}

void copy_cache(Context& ctx, Tensor cache, Tensor from, Tensor to, int64_t length) {
    check_cache("copy_cache", cache);
    require(from.rank == 1, "copy_cache: expected from i32 (n), found ", from);
    const int64_t count = from.dim(0), slots = cache.dim(0), heads = cache.dim(1);
    check_tensor("copy_cache", "from", from, Dtype::i32, {count});
    check_tensor("copy_cache", "to", to, Dtype::i32, {count});
    require(0 <= length && length <= cache.dim(2), "copy_cache: expected a length up to ",
            cache.dim(2), ", found ", length);
    if (ctx.on_cuda()) return cuda_ops().copy_cache(ctx, cache, from, to, length);
    const int32_t *source = from.as<int32_t>(), *target = to.as<int32_t>();
    int64_t moved = 0;
    for (int64_t i = 0; i < count; ++i) {
        require(0 <= source[i] && source[i] < slots && 0 <= target[i] && target[i] < slots,
                "copy_cache: expected slots below ", slots, ", found ", source[i], " to ",
                target[i]);
        moved += source[i] != target[i];
    }
    if (moved == 0 || length == 0) return;
    const Arena::Scope scope(ctx.arena);
    const int64_t size = cache_row_bytes(cache.dtype, cache.dim(3));
    const int64_t kept = length * size, head = cache.dim(2) * size;  // bytes
    auto* bytes = static_cast<std::byte*>(cache.data);
    auto* old = static_cast<std::byte*>(ctx.arena.tensor(Dtype::u8, {count, heads, kept}).data);
    // Slots that are copied to themselves are skipped. All slots are read before any is written.
    parallel_for(ctx.threads, count * heads, [&](int64_t i) {
        const int64_t b = i / heads, h = i % heads;
        if (source[b] == target[b]) return;
        std::memcpy(old + i * kept, bytes + (source[b] * heads + h) * head, kept);
    });
    parallel_for(ctx.threads, count * heads, [&](int64_t i) {
        const int64_t b = i / heads, h = i % heads;
        if (source[b] == target[b]) return;
        std::memcpy(bytes + (target[b] * heads + h) * head, old + i * kept, kept);
    });
}

}  // namespace hark
