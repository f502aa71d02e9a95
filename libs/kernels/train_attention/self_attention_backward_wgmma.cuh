// The gradient of self-attention on Hopper, data movement. An item is a tile of 128 keys of one
// head of keys and values. Their gradients stay in registers while a block loops over the tiles of
// 128 or 64 queries that see them, one head of the group after another.
// An item's part of the queries' gradients is added to sums in global memory (held by the L2
// cache), one item after another: the last tile of keys first, by a count of the items that have
// added. Items are started in that order, so the item to wait for has always started, and it is one
// step ahead of the one that waits.
#pragma once

#include "kernels/attention/attention_kernels.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/train_attention/self_attention_kernels.cuh"

namespace hark::cuda::backward {

using namespace hopper;
using T = __nv_bfloat16;

inline constexpr int kTile = 128;  // keys per item
inline constexpr int kRow = 64;    // channels per row of shared memory
inline constexpr int kGroup = 128, kThreads = 3 * kGroup;
inline constexpr int kRegisters = 240, kCopyRegisters = 24;
static_assert(kTile == kRowPadding);

// Kernels for heads of up to D channels. Those from args.d are zeros in shared memory.
template <int D>
struct Shape {
    static constexpr int kD = D, kParts = D > kRow ? 2 : 1, kColumns = kParts * kRow;
    static constexpr int kQueries = kTile / kParts;  // per step
    static constexpr int kItems = D > kRow ? 1 : 2;  // in shared memory
    static constexpr int kSteps = kTile / kQueries;  // tiles of queries per tile of keys
    static constexpr uint32_t kItemBytes = 2 * kTile * kColumns * sizeof(T);
    static constexpr uint32_t kStepBytes = 2 * kQueries * (kColumns * sizeof(T) + sizeof(float));
};

struct Item {
    int kv_head, keys, last;  // tile of keys; last tile of queries. kv_head -1: after the last item
};

// A step's tile of queries, as seen by the item.
struct alignas(16) Queries {
    int h, tile;
    bool crossing;  // some of them do not see the item's first key: it is of another sequence
    bool last;      // no item after this one adds to their gradients
};

template <class S>
struct Shared {
    T keys[S::kItems][S::kParts][kTile][kRow], values[S::kItems][S::kParts][kTile][kRow];
    T q[2][S::kParts][S::kQueries][kRow], dout[2][S::kParts][S::kQueries][kRow];
    T slopes[2][2][S::kQueries][64];  // of a step's scores: for each half of the keys
    float dq[2][64 * 64];  // of each half of the queries or channels, as the products leave it
    float lse2[2][S::kQueries], delta[2][S::kQueries];
    Queries queries[2];
    Item items[S::kItems];
    uint64_t item_full[S::kItems], item_empty[S::kItems];  // items, keys and values
    uint64_t q_full[2], q_empty[2];            // q, dout, lse2, delta, queries
    uint64_t slopes_full[2], slopes_empty[2];  // by both halves of the keys
    uint64_t dq_full[2], dq_empty[2];
};

struct Maps {
    CUtensorMap keys, queries, dout;
};

// An item's part of dq has two halves: of 128 queries or, where a step has 64, of 128 channels.
struct Args : SelfAttentionBackwardArgs {
    float* sums;  // (H, tiles of queries, 2, 64, 64): of the queries' gradients
    int* counts;  // of started items; then (H, tiles, 2) of items that have added to the sums

    __host__ __device__ int group() const { return heads / kv_heads; }
    template <class S>
    __device__ int64_t half_tile(int h, int tile, int half) const {
        return (int64_t{h} * (padded / S::kQueries) + tile) * 2 + half;
    }
};

// Whether the first row of a tile of queries sees no key before the item's.
template <class S>
__device__ bool is_last(const Args& args, const Item& item, int tile) {
    return args.first[tile * S::kQueries] >= item.keys * kTile;
}

// The items that add to the gradients of a tile of queries before this one.
template <class S>
__device__ int items_before(const Item& item, int tile) {
    return tile / S::kSteps - item.keys;
}

// Calls step(head, tile) for an item's tiles of queries, in order.
template <class S, class Step>
__device__ void each_step(const Args& args, const Item& item, const Step& step) {
    const int first_head = item.kv_head * args.group();
    for (int h = first_head; h < first_head + args.group(); ++h)
        for (int tile = item.keys * S::kSteps; tile <= item.last; ++tile) step(h, tile);
}

// One thread: takes items and starts the copies.
template <class S>
__device__ void copy_tiles(Shared<S>& shared, const Maps& maps, const Args& args) {
    Place<S::kItems> at;
    Place<2> place;
    for (;; at.advance()) {
        // Waits for the last step but one, so that items start in the order of their numbers.
        wait(shared.q_empty[place.at], place.parity ^ 1);
        const int index = atomicAdd(args.counts, 1);
        const int kv_head = index % args.kv_heads;
        const int keys = args.padded / kTile - 1 - index / args.kv_heads;
        uint64_t& full = shared.item_full[at.at];
        wait(shared.item_empty[at.at], at.parity ^ 1);
        if (keys < 0) {
            shared.items[at.at].kv_head = -1;
            arrive(full);
            return;
        }
        const int end = args.end[min(keys * kTile + kTile, args.rows) - 1];
        const Item item = {kv_head, keys, (end - 1) / S::kQueries};
        shared.items[at.at] = item;
        arrive_expecting(full, S::kItemBytes);
        for (int part = 0; part < S::kParts; ++part) {
            const int head = args.heads + kv_head, channel = part * kRow;
            copy_box(shared.keys[at.at][part], maps.keys, full, channel, head, keys * kTile);
            copy_box(shared.values[at.at][part], maps.keys, full, channel, head + args.kv_heads,
                     keys * kTile);
        }
        each_step<S>(args, item, [&](int h, int tile) {
            uint64_t& here = shared.q_full[place.at];
            const int first = tile * S::kQueries, last = min(first + S::kQueries, args.rows) - 1;
            const Queries queries = {h, tile, args.first[last] > keys * kTile,
                                     is_last<S>(args, item, tile)};
            wait(shared.q_empty[place.at], place.parity ^ 1);
            shared.queries[place.at] = queries;
            arrive_expecting(here, S::kStepBytes);
            for (int part = 0; part < S::kParts; ++part) {
                const int channel = part * kRow;
                copy_box(shared.q[place.at][part], maps.queries, here, channel, h, first);
                copy_box(shared.dout[place.at][part], maps.dout, here, channel, h, first);
            }
            const int64_t row = int64_t{h} * args.padded + first;
            copy_bytes(shared.lse2[place.at], args.lse2 + row, sizeof shared.lse2[0], here);
            copy_bytes(shared.delta[place.at], args.delta + row, sizeof shared.delta[0], here);
            place.advance();
        });
    }
}

__device__ inline int load_acquire(const int* from) {
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

// Waits until `before` items have added to the sums of this count.
__device__ inline void wait_for_items(const int* count, int before) {
    if (before == 0) return;
    while (load_acquire(count) < before) {
    }
}

__device__ inline void store_release(int* to, int value) {
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

// One thread: adds the products' dq[half] to the sums, if other items follow.
template <class S>
__device__ void add_dq(Shared<S>& shared, const Args& args, int half) {
    Place<S::kItems> at;
    uint32_t parity = 0;
    const float* own = shared.dq[half];
    for (;; at.advance()) {
        wait(shared.item_full[at.at], at.parity);
        const Item item = shared.items[at.at];
        if (item.kv_head < 0) return;
        each_step<S>(args, item, [&](int h, int tile) {
            if (is_last<S>(args, item, tile)) return;
            const int before = items_before<S>(item, tile);
            const int64_t place = args.half_tile<S>(h, tile, half);
            int* count = args.counts + 1 + place;
            float* sums = args.sums + place * (64 * 64);
            wait_for_items(count, before);
            fence_copies();
            wait(shared.dq_full[half], parity);
            parity ^= 1;
            if (before == 0)
                write_bytes(sums, own, sizeof shared.dq[0]);
            else
                add_floats(sums, own, sizeof shared.dq[0]);
            commit_writes();
            wait_until_read();
            arrive(shared.dq_empty[half]);
            wait_until_written();
            fence_copies();
            store_release(count, before + 1);
        });
        arrive(shared.item_empty[at.at]);
    }
}

}  // namespace hark::cuda::backward
