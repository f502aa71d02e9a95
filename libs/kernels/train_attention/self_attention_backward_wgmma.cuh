// The gradient of self-attention on Hopper, data movement. An item is a tile of 128 keys of one
// head. The gradients of its keys and values stay in registers while a block loops over the tiles
// of 128 queries that see them.
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

inline constexpr int kTile = 128;  // keys per item, queries per step
inline constexpr int kD = 64, kGroup = 128, kThreads = 3 * kGroup;
inline constexpr int kRegisters = 240, kCopyRegisters = 24;
inline constexpr uint32_t kTileBytes = kTile * kD * sizeof(T);
static_assert(kTile == kRowPadding);

struct Item {
    int h, keys, last;  // head; tile of keys; last tile of queries. h is -1 after the last item
};

// A step's tile of queries, as seen by the item.
struct alignas(16) Queries {
    bool crossing;  // some of them do not see the item's first key: it is of another sequence
    bool last;      // no item after this one adds to their gradients
};

struct Shared {
    T keys[2][kTile][kD], values[2][kTile][kD];
    T q[2][kTile][kD], dout[2][kTile][kD];
    T slopes[2][2][kTile][64];  // of a step's scores: for each half of the keys (queries, keys)
    float dq[2][64 * kD];       // of each half of the queries, as the products leave it
    float lse2[2][kTile], delta[2][kTile];
    Queries queries[2];
    Item items[2];
    uint64_t item_full[2], item_empty[2];      // items, keys and values
    uint64_t q_full[2], q_empty[2];            // q, dout, lse2, delta, queries
    uint64_t slopes_full[2], slopes_empty[2];  // by both halves of the keys
    uint64_t dq_full[2], dq_empty[2];          // of each half of the queries
};

struct Maps {
    CUtensorMap qkv, dout;
};

struct Args : SelfAttentionBackwardArgs {
    float* sums;  // (H, tiles, 2, 64 D): of the queries' gradients, for each half of each tile
    int* counts;  // of started items; then (H, tiles, 2) of items that have added to the sums

    __host__ __device__ int tiles() const { return padded / kTile; }
    __device__ int64_t half_tile(int h, int tile, int half) const {
        return (int64_t{h} * tiles() + tile) * 2 + half;
    }
};

// Whether the first row of a tile of queries sees no key before the item's.
__device__ inline bool is_last(const Args& args, const Item& item, int tile) {
    return args.first[tile * kTile] >= item.keys * kTile;
}

// One thread: takes items and starts the copies.
__device__ inline void copy_tiles(Shared& shared, const Maps& maps, const Args& args) {
    const int c = args.channels();
    Place<2> at, step;
    for (;; at.advance()) {
        // Waits for the last step but one, so that items start in the order of their numbers.
        wait(shared.q_empty[step.at], step.parity ^ 1);
        const int index = atomicAdd(args.counts, 1);
        const int h = index % args.heads, keys = args.tiles() - 1 - index / args.heads;
        uint64_t& full = shared.item_full[at.at];
        wait(shared.item_empty[at.at], at.parity ^ 1);
        if (keys < 0) {
            shared.items[at.at].h = -1;
            arrive(full);
            return;
        }
        const int last = (args.end[min(keys * kTile + kTile, args.rows) - 1] - 1) / kTile;
        const Item item = {h, keys, last};
        shared.items[at.at] = item;
        arrive_expecting(full, 2 * kTileBytes);
        copy_box(shared.keys[at.at], maps.qkv, full, c + h * kD, keys * kTile);
        copy_box(shared.values[at.at], maps.qkv, full, 2 * c + h * kD, keys * kTile);
        for (int tile = keys; tile <= last; ++tile, step.advance()) {
            uint64_t& here = shared.q_full[step.at];
            const int end = min(tile * kTile + kTile, args.rows);
            const Queries queries = {args.first[end - 1] > keys * kTile, is_last(args, item, tile)};
            wait(shared.q_empty[step.at], step.parity ^ 1);
            shared.queries[step.at] = queries;
            arrive_expecting(here, 2 * kTileBytes + 2 * sizeof shared.lse2[0]);
            copy_box(shared.q[step.at], maps.qkv, here, h * kD, tile * kTile);
            copy_box(shared.dout[step.at], maps.dout, here, h * kD, tile * kTile);
            const int64_t row = int64_t{h} * args.padded + tile * kTile;
            copy_bytes(shared.lse2[step.at], args.lse2 + row, sizeof shared.lse2[0], here);
            copy_bytes(shared.delta[step.at], args.delta + row, sizeof shared.delta[0], here);
        }
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
__device__ inline void add_dq(Shared& shared, const Args& args, int half) {
    Place<2> at;
    uint32_t parity = 0;
    const float* own = shared.dq[half];
    for (;; at.advance()) {
        wait(shared.item_full[at.at], at.parity);
        const Item item = shared.items[at.at];
        if (item.h < 0) return;
        for (int tile = item.keys; tile <= item.last; ++tile) {
            if (is_last(args, item, tile)) continue;
            const int before = tile - item.keys;  // items that add first
            const int64_t place = args.half_tile(item.h, tile, half);
            int* count = args.counts + 1 + place;
            float* sums = args.sums + place * (64 * kD);
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
        }
        arrive(shared.item_empty[at.at]);
    }
}

}  // namespace hark::cuda::backward
