// rope_append on the GPU: a few neighbouring threads per row and head, of queries, then of keys and
// values.
#include <bit>

#include "kernels/batch_layout.h"
#include "kernels/cuda/hopper.cuh"
#include "kernels/kv_cache/cache_rows.cuh"
#include "kernels/rope/rope_rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kAppendThreads = 128;
constexpr int64_t kAppendBlocks = 16;  // per multiprocessor, that run at the same time

// A row of one sequence, and what the cache has for it.
struct RopeRow {
    int64_t t, slot, place;
    int position;
};

// One of the query heads and kv heads after them, by args.lanes threads, whose first channels turn
// by `first`.
template <int V, class X, class To>
__device__ void turn_head(const RopeArgs& args, const RopeRow& row, int number,
                          const Turns<V>& first, X* q, X* k, const X* v) {
    const int d = args.d, half = args.half, lane = threadIdx.x % args.lanes, items = (d - half) / V;
    const bool is_head = number < args.heads + args.kv_heads, is_query = number < args.heads;
    const int h = is_query ? number : number - args.heads;
    X* from = is_query ? q + row.t * args.q_width + h * d : k + row.t * args.k_width + h * d;
    const float* weights = is_query ? args.q_norm : args.k_norm;
    float factor = 1;
    if (args.q_norm || args.k_norm) {
        float squares = 0;
        for (int i = lane; i < items && is_head; i += args.lanes)
            squares += Channels<V>(from, i, half).squares();
        factor = norm_factor(squares, args.lanes, d, is_query ? args.q_eps : args.k_eps);
    }
    if (!is_head) return;
    const bool is_place = !is_query && row.slot >= 0;
    const int64_t at = ((row.slot * args.kv_heads + h) * args.capacity + row.place) * d;
    for (int i = lane; i < items; i += args.lanes) {
        Channels<V> channels(from, i, half);
        if (weights) channels.norm(factor, weights, half);
        channels.rotate(i == lane ? first : Turns<V>(args, i * V, row.position));
        channels.store(from, half);
        if (!is_place) continue;
        channels.store(static_cast<To*>(args.keys) + at, half);
        Channels<V>(v + row.t * args.v_width + h * d, i, half)
            .store(static_cast<To*>(args.values) + at, half);
    }
}

// Block (row j of the sequence, heads, b): the heads from blockIdx.y's on, gridDim.y's further. A
// place outside the cache is not written.
template <int V, class X, class To>
__global__ void __launch_bounds__(kAppendThreads)
    rope_kernel(RopeArgs args, X* q, X* k, const X* v) {
    pdl_trigger();
    const int b = blockIdx.z, start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int j = blockIdx.x;
    const int64_t p = args.length[b] - n + j;
    const int64_t t = start + j;
    const RopeRow row{t, slot_of(args, b, p), p % args.capacity, j < n ? args.position[t] : 0};
    const Turns<V> first(args, threadIdx.x % args.lanes * V, row.position);
    pdl_wait();
    if (j >= n) return;
    const int at_once = kAppendThreads / args.lanes, all = args.heads + args.kv_heads;
    for (int number = blockIdx.y * at_once; number < all; number += gridDim.y * at_once)
        turn_head<V, X, To>(args, row, number + threadIdx.x / args.lanes, first, q, k, v);
}

}  // namespace

RopeArgs rope_args(const Tensor& keys, const Tensor& values, const Columns& q, const Columns& k,
                   const Columns& v, int64_t heads, const Tensor& position, const Rope& rope,
                   const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows) {
    const auto floats = [](const Tensor& t) { return t ? t.as<float>() : nullptr; };
    return {keys.data,
            values.data,
            rows.query_start.as<int32_t>(),
            rows.block_table.as<int32_t>(),
            rows.length.as<int32_t>(),
            position.as<int32_t>(),
            floats(rope.frequencies),
            floats(q_norm.weight),
            floats(k_norm.weight),
            rope.scale,
            q_norm.eps,
            k_norm.eps,
            keys.dtype == Dtype::q8_0 ? 0 : keys.dim(0),  // written after the rope
            keys.dim(2),
            q.rows.dim(1),
            k.rows.dim(1),
            v.rows.dim(1),
            static_cast<int>(heads),
            static_cast<int>(keys.dim(1)),
            static_cast<int>(keys.dim(3)),
            rope.frequencies ? static_cast<int>(rope.frequencies.dim(0)) : 0,
            static_cast<int>(rows.blocks()),
            0};
}

void rope_append(Context& ctx, Tensor keys, Tensor values, const Columns& q, const Columns& k,
                 const Columns& v, int64_t heads, Tensor position, const Rope& rope,
                 const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows) {
    if (rows.few > 0) {
        for (const BatchLayout& part : parts_of(rows))
            cuda::rope_append(ctx, keys, values, q, k, v, heads, position, rope, q_norm, k_norm,
                              part);
        return;
    }
    enter(ctx,
          {&keys, &values, &q.rows, &k.rows, &v.rows, &position, &rope.frequencies, &q_norm.weight,
           &k_norm.weight, &rows.query_start, &rows.block_table, &rows.length});
    const int64_t kv_heads = keys.dim(1), d = keys.dim(3);
    if (rows.sequences() == 0 || rows.max_queries <= 0 || d == 0) return;
    RopeArgs args = rope_args(keys, values, q, k, v, heads, position, rope, q_norm, k_norm, rows);
    const Dtype written = keys.dtype == Dtype::q8_0 ? q.rows.dtype : keys.dtype;
    with_float_type(written, [&](auto to_value) {
        with_float_type(q.rows.dtype, [&](auto from_value) {
            using X = decltype(from_value);
            const auto at = [](const Columns& columns) {
                return static_cast<X*>(columns.rows.data) + columns.first;
            };
            using To = decltype(to_value);
            const bool wide = in_packs(d, {at(q), at(k), at(v)}) && args.half % kRopePack == 0 &&
                              (args.q_width | args.k_width | args.v_width) % kRopePack == 0;
            const int64_t items = (d - args.half) / (wide ? kRopePack : 1);
            args.lanes = static_cast<int>(
                std::min(std::bit_ceil(static_cast<uint64_t>(items)), uint64_t{32}));
            // With many rows each block turns more heads by the same angles.
            const int64_t turns = ceil_div((heads + kv_heads) * args.lanes, kAppendThreads);
            const int64_t most = std::max<int64_t>(
                kAppendBlocks * multiprocessors() / (rows.max_queries * rows.sequences()), 1);
            const int64_t blocks = std::min(turns, most);
            const dim3 grid(static_cast<unsigned>(rows.max_queries), static_cast<unsigned>(blocks),
                            static_cast<unsigned>(rows.sequences()));
            pdl_launch(ctx, wide ? rope_kernel<kRopePack, X, To> : rope_kernel<1, X, To>, grid,
                       kAppendThreads, 0, args, at(q), at(k), static_cast<const X*>(at(v)));
        });
    });
    if (keys.dtype == Dtype::q8_0) append_q8_0(ctx, keys, values, k, v, rows);
}

}  // namespace hark::cuda
