// The new rows of sequences that have one each, for the grouped kernel: a block norms and turns its
// query heads and, if it attends the newest key, that key, which it writes to the cache too.
#pragma once

#include "kernels/attention/attention_kernels.cuh"
#include "kernels/kv_cache/cache_rows.cuh"
#include "kernels/rope/rope_rows.cuh"

namespace hark::cuda {

// Rows as their product has made them; q, k and v: the columns of the first head.
struct NewRowArgs {
    RopeArgs rope;
    const void *q, *k, *v;
};

// In shared memory, turned, of type T.
template <class T, int D>
struct alignas(16) NewRows {
    static constexpr int kStride = D + 8;  // its words are in other banks from row to row
    T queries[kMostGroupedHeads][kStride], key[D], value[D];

    // Loads the `heads` query heads of row t from first_head on and, if the block attends the
    // newest key, key and value of kv_head; norms and turns them. by: the angles of the thread's
    // channels, from 2 * (threadIdx.x % (D / 4)) on. newest: where the cache has the newest key;
    // below 0: nowhere. The caller synchronises the block afterwards.
    template <int Threads>
    __device__ void load(const NewRowArgs& args, int t, int first_head, int heads, int kv_head,
                         bool has_newest, int64_t newest, const Turns<2>& by) {
        constexpr int kLanes = D / 4, kHalf = D / 2, kHeads = Threads / kLanes;
        constexpr int kRounds = (kMostGroupedHeads + kHeads) / kHeads;  // the key after the queries
        const RopeArgs& rope = args.rope;
        const int lane = threadIdx.x % kLanes, first = threadIdx.x / kLanes;
        const T* const q = static_cast<const T*>(args.q) + t * rope.q_width + first_head * D;
        const T* const k = static_cast<const T*>(args.k) + t * rope.k_width + kv_head * D;
        const T* const v = static_cast<const T*>(args.v) + t * rope.v_width + kv_head * D;
        Channels<2> own[kRounds] = {};
#pragma unroll
        for (int i = 0; i < kRounds; ++i) {
            const int head = i * kHeads + first;
            if (head < heads || (head == heads && has_newest))
                own[i] = Channels<2>(head < heads ? q + head * D : k, lane, kHalf);
        }
        const bool has_value = has_newest && threadIdx.x < D / 8;
        uint4 eight{};
        if (has_value) eight = reinterpret_cast<const uint4*>(v)[threadIdx.x];
#pragma unroll
        for (int i = 0; i < kRounds; ++i) {
            const int head = i * kHeads + first;
            const float* weights = head < heads ? rope.q_norm : rope.k_norm;
            if (rope.q_norm || rope.k_norm) {
                const float eps = head < heads ? rope.q_eps : rope.k_eps;
                const float factor = norm_factor(own[i].squares(), kLanes, D, eps);
                if (weights && head <= heads) own[i].norm(factor, weights, kHalf);
            }
            own[i].rotate(by);
            if (head < heads) own[i].store(queries[head], kHalf);
            if (head != heads || !has_newest) continue;
            own[i].store(key, kHalf);
            if (newest >= 0) own[i].store(static_cast<T*>(rope.keys) + newest, kHalf);
        }
        if (!has_value) return;
        reinterpret_cast<uint4*>(value)[threadIdx.x] = eight;
        if (newest >= 0)
            reinterpret_cast<uint4*>(static_cast<T*>(rope.values) + newest)[threadIdx.x] = eight;
    }
};

// Where a cache has the newest key of sequence b and a key head; below 0: nowhere.
__device__ inline int64_t newest_place(const RopeArgs& rope, int b, int kv_head) {
    const int64_t p = rope.length[b] - 1, slot = slot_of(rope, b, p);
    if (slot < 0) return -1;
    return ((slot * rope.kv_heads + kv_head) * rope.capacity + p % rope.capacity) * rope.d;
}

}  // namespace hark::cuda
