// One query each of heads that share keys, of many texts: a block streams the keys and values of a
// text and a key head through shared memory, chunk after chunk and item after item, so that reads
// are in flight all the time and no other kernel has to add parts.
#include <limits>

#include "kernels/attention/decode_streamed.cuh"

namespace hark::cuda::streamed {
namespace {

// New: as grouped_kernel's.
template <class T, int D, bool New>
__global__ void __launch_bounds__(kThreads, 4)
    stream_kernel(const __grid_constant__ StreamArgs all) {
#if HARK_HOPPER_CODE
    pdl_trigger();
    using S = Stream<T, D>;
    extern __shared__ __align__(1024) unsigned char stream_memory[];
    S& shared = *reinterpret_cast<S*>(stream_memory);
    const AttentionArgs& args = all.attention;
    const int heads = args.heads / args.kv_heads, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        prefetch_map(all.keys);
        prefetch_map(all.values);
        for (uint64_t& barrier : shared.full) init(barrier, 1);
        fence_init();
    }
    __syncthreads();
    Chunks next(all), now = next;  // next: to be requested
    int block = next.block(all), to = 0;
    const auto request = [&] {
        if (threadIdx.x == 0) {
            arrive_expecting(shared.full[to], sizeof(Stage<D>));
            const int row = (block * args.kv_heads + next.head) * static_cast<int>(args.capacity) +
                            (next.key & ((1u << all.shift) - 1));
            Stage<D>& stage = shared.stages[to];
            for (int c = 0; c < D; c += 64) {
                const int part = c / 64 * Stage<D>::kPartBytes;
                copy_box(stage.keys + part, all.keys, shared.full[to], c, row);
                copy_box(stage.values + part, all.values, shared.full[to], c, row);
            }
        }
        if (++to == S::kStages) to = 0;
        next.advance(all);
        block = next.block(all);
    };
    bool waits = true;
#pragma unroll 1
    for (int i = 0; i < S::kStages && next.is_there(all); ++i) {
        // Only the newest keys may still be written.
        if (waits && (!args.kv_ready || (!New && next.has_newest()))) {
            pdl_wait();
            waits = false;
        }
        request();
    }
    ItemSums<T, D, kWarpKeys / 16> sums;
    Place<S::kStages> place;
#pragma unroll 1
    while (now.is_there(all)) {
        const int start = args.query_start[now.b], first_head = now.head * heads;
        const int g = threadIdx.x % 32 / 4;
        const bool has_row = args.query_start[now.b + 1] > start;
        const auto begin = [&](const T* of) { sums.begin(g < heads && has_row ? of : nullptr); };
        if constexpr (New) {
            const Turns<2> by = turns_of<D>(all.fresh.rope, has_row ? start : 0);
            if (waits) pdl_wait();
            const bool has_newest = has_row && now.end == now.length && now.key < now.end;
            if (has_row)
                load_rows<T, D>(shared.rows, all.fresh, start, now.head, heads, has_newest,
                                has_newest ? now.newest(all) : -1, by);
            __syncthreads();
            begin(shared.rows.queries[g]);
        } else {
            if (waits) pdl_wait();
            begin(static_cast<const T*>(args.q) + start * args.q_stride + (first_head + g) * D);
        }
        waits = false;
        for (bool last = false; !last;) {
            Stage<D>& stage = shared.stages[place.at];
            wait(shared.full[place.at], place.parity);
            const bool newest = New && has_row && now.has_newest();
            const int keys = now.end - now.key;
            if (newest || keys < kChunk) {
                if (warp == 0) end_chunk(stage, keys, newest ? &shared.rows : nullptr);
                __syncthreads();
            }
            sums.add(stage, warp * kWarpKeys, keys - warp * kWarpKeys, args.scale_log2);
            __syncthreads();  // all have read the stage
            if (next.is_there(all)) request();
            place.advance();
            last = now.is_last();
            if (!last) now.advance(all);
        }
        if (warp > 0) sums.leave(shared.items[warp - 1]);
        __syncthreads();
        if (warp == 0) {
            for (const WarpItem<D>& item : shared.items) sums.take(item);
            sums.finish();
            if (all.splits > 1)
                sums.write_part(
                    part_of(all.parts, args, all.splits, now.b, first_head, now.begin / kPartKeys),
                    int64_t{all.splits} * (D + 2), heads);
            else if (has_row)
                sums.write(
                    static_cast<T*>(args.out) + (int64_t{start} * args.heads + first_head) * D,
                    heads);
        }
        now.advance(all);
    }
#endif
}

template <class T, int D, bool New>
void launch_streams(Context& ctx, const StreamArgs& all) {
    constexpr int kBytes = sizeof(Stream<T, D>), kReserved = 1024, kShared = 228 << 10;
    constexpr int kAtOnce = kShared / (kBytes + kReserved);  // blocks of a multiprocessor
    const auto kernel = stream_kernel<T, D, New>;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    const auto blocks = std::min<unsigned>(all.items, kAtOnce * multiprocessors());
    pdl_launch(ctx, kernel, blocks, kThreads, kBytes, all);
}

}  // namespace
}  // namespace hark::cuda::streamed

namespace hark::cuda {

bool has_streamed_attention(const Context& ctx, const AttentionArgs& args) {
    return !ctx.batch_invariant && args.max_queries == 1 && !args.has_options() &&
           args.out_type == args.cache_type &&
           args.sequences * args.kv_heads >= streamed::kLeastPairs * multiprocessors() &&
           key_splits(args, streamed::kPartKeys) <= streamed::kMostParts &&
           args.slots * args.kv_heads * args.capacity <= std::numeric_limits<int32_t>::max() &&
           has_hopper_code(
               reinterpret_cast<const void*>(streamed::stream_kernel<__half, 64, false>));
}

void attention_decode_streamed(Context& ctx, const AttentionArgs& args, const NewRowArgs* fresh) {
    const Arena::Scope scope(ctx.arena);
    const int splits = key_splits(args, streamed::kPartKeys),
              pairs = args.sequences * args.kv_heads;
    const auto d = static_cast<uint64_t>(args.d);
    const auto rows = static_cast<uint64_t>(args.slots * args.kv_heads * args.capacity);
    const auto map = [&](const void* cache) {
        return tile_map(args.cache_type, cache, {d, rows}, {d * 2}, {64, streamed::kChunk});
    };
    float* const parts =
        ctx.arena.tensor(Dtype::f32, {args.sequences, args.heads, splits, args.d + 2}).as<float>();
    const streamed::StreamArgs all = {map(args.keys),
                                      map(args.values),
                                      args,
                                      fresh ? *fresh : NewRowArgs{},
                                      parts,
                                      static_cast<unsigned>(splits * pairs),
                                      static_cast<unsigned>(pairs),
                                      static_cast<unsigned>(args.kv_heads),
                                      splits,
                                      args.blocks == 1 ? 31 : args.shift};
    const auto with_d = [&](auto type, auto size) {
        using T = decltype(type);
        fresh ? streamed::launch_streams<T, size(), true>(ctx, all)
              : streamed::launch_streams<T, size(), false>(ctx, all);
    };
    const auto with_type = [&](auto type) {
        args.d == 64 ? with_d(type, std::integral_constant<int, 64>{})
                     : with_d(type, std::integral_constant<int, 128>{});
    };
    args.cache_type == Dtype::f16 ? with_type(__half{}) : with_type(__nv_bfloat16{});
    combine_parts(ctx, args, parts, splits);
}

}  // namespace hark::cuda
