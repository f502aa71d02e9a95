// attention on Hopper, data movement: the block's shared memory, the order of its tiles, and the
// warps that start the copies.
#pragma once

#include "kernels/attention/attention_kernels.cuh"
#include "kernels/cuda/hopper.cuh"

namespace hark::cuda::wgmma {

using namespace hopper;

inline constexpr int kKeys = 128;   // per step
// Keys of a box in a cache of several blocks per sequence: their rows follow one another.
inline constexpr int kBoxKeys = kGroupedBlock;
inline constexpr int kRow = 64;     // channels per row in shared memory: the swizzle's 128 bytes
inline constexpr int kGroup = 128;  // threads of a warpgroup

// Shape of a block: `Groups` warpgroups with 64 queries of D channels each. Scores, probabilities
// and sums fill the registers: 160 per thread for 64 channels and three warpgroups.
template <int D, int Groups>
struct Shape {
    static constexpr int kD = D, kGroups = Groups;
    static constexpr int kQueries = 64 * kGroups;
    static constexpr int kThreads = kGroup * (kGroups + 1);
    static constexpr int kBuffers = D == 64 ? 4 : 2;  // for keys, and as many for values
    static constexpr int kRegisters = kGroups == 3 ? 160 : 232;
    static constexpr int kCopyRegisters = kGroups == 3 ? 32 : 40;
};

// A tile of queries of one head.
struct Work {
    int h, b, slot;
    int start, n, first;  // the sequence's first row, its queries, the tile's first of them
    int length, steps;    // the sequence's keys; steps up to the last key that the tile sees
};

template <int N>
struct Barriers {
    uint64_t full[N], empty[N];
};

template <class T, class S>
struct Shared {
    T q[2][S::kD / kRow][S::kQueries][kRow];
    T keys[S::kBuffers][S::kD / kRow][kKeys][kRow];
    T values[S::kBuffers][S::kD / kRow][kKeys][kRow];
    Work work[2];  // of the queries in q; n is 0 after the last tile
    Barriers<2> for_q;
    Barriers<S::kBuffers> for_keys, for_values;
    uint64_t patched;  // values have arrived whose rows after the length must still be cleared
};

struct Maps {
    CUtensorMap q, keys, values;
};

// The tiles of a block, in order. Neighbouring blocks compute tiles of one head at the same time
// and so read the same keys. Causal tiles differ in length: rounds of as many heads as there are
// blocks go from the longest tile to the shortest, every other round backwards.
template <class S>
class Schedule {
  public:
    __device__ explicit Schedule(const AttentionArgs& args)
        : args_(args), tiles_((static_cast<int>(args.max_queries) + kQueries - 1) / kQueries) {}

    // Moves to the next tile with queries that see keys; if `none`, with queries that see none.
    __device__ bool next(Work& work, bool none = false) {
        const int heads = args_.heads * args_.sequences, blocks = static_cast<int>(gridDim.x);
        for (;;) {
            const int block = static_cast<int>(blockIdx.x);
            const int place = args_.causal && round_ % 2 ? blocks - 1 - block : block;
            const int index = round_++ * blocks + place;
            if ((round_ - 1) * blocks >= heads * tiles_) return false;
            if (index >= heads * tiles_) continue;
            int head = index / tiles_, tile = index % tiles_;
            if (args_.causal) {
                const int group = index / (blocks * tiles_);
                const int rest = index - group * blocks * tiles_;
                const int in_group = min(blocks, heads - group * blocks);
                head = group * blocks + rest % in_group;
                tile = tiles_ - 1 - rest / in_group;
            }
            const int b = head / args_.heads;
            work.h = head - b * args_.heads;
            work.b = b;
            work.first = tile * kQueries;
            work.start = args_.query_start[b];
            work.n = args_.query_start[b + 1] - work.start;
            if (work.first >= work.n) continue;
            work.length = args_.length[b];
            work.slot = args_.slot[b];
            const int end = args_.visible(b, work.n, min(work.first + kQueries, work.n) - 1);
            work.steps = end > 0 ? (end + kKeys - 1) / kKeys : 0;
            if ((end <= 0) == none) return true;
        }
    }

  private:
    static constexpr int kQueries = S::kQueries;
    const AttentionArgs& args_;
    int tiles_, round_ = 0;
};

// Starts the copies of a step's keys or values, `to` in parts of kRow channels.
template <class T, int D>
__device__ inline void copy_step(T (&to)[D / kRow][kKeys][kRow], const CUtensorMap& map,
                                 uint64_t& barrier, const AttentionArgs& args, const Work& work,
                                 int step) {
    const int kv_head = work.h / (args.heads / args.kv_heads);
    if (args.blocks == 1) {
        const int column = args.packed ? kv_head * D : 0;
        const int block = args.packed ? work.b : work.slot * args.kv_heads + kv_head;
        for (int part = 0; part < D / kRow; ++part)
            copy_box(to[part], map, barrier, column + part * kRow, step * kKeys, block);
        return;
    }
    constexpr int kBoxes = kKeys / kBoxKeys;
    int blocks[kBoxes];
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
        const int place = (step * kKeys + i * kBoxKeys) >> args.shift;
        blocks[i] = place < args.blocks ? args.slot[work.b * args.blocks + place] : -1;
    }
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
        // A block that is not in the cache: outside of the map are zeros.
        const auto block = blocks[i] < 0 ? static_cast<int>(args.slots) : blocks[i];
        const int row = (step * kKeys + i * kBoxKeys) & ((1 << args.shift) - 1);
        for (int part = 0; part < D / kRow; ++part)
            copy_box(to[part][i * kBoxKeys], map, barrier, part * kRow, row,
                     block * args.kv_heads + kv_head);
    }
}

// One thread: starts the copies of all queries and keys.
template <class T, class S>
__device__ void copy_queries_and_keys(Shared<T, S>& shared, const Maps& maps,
                                      const AttentionArgs& args) {
    Schedule<S> schedule(args);
    Place<2> q;
    Place<S::kBuffers> place;
    for (Work work; schedule.next(work); q.advance()) {
        wait(shared.for_q.empty[q.at], q.parity ^ 1);
        shared.work[q.at] = work;
        arrive_expecting(shared.for_q.full[q.at], sizeof shared.q[0]);
        for (int part = 0; part < S::kD / kRow; ++part)
            copy_box(shared.q[q.at][part], maps.q, shared.for_q.full[q.at],
                     work.h * S::kD + part * kRow, work.start + work.first);
        for (int step = 0; step < work.steps; ++step, place.advance()) {
            wait(shared.for_keys.empty[place.at], place.parity ^ 1);
            arrive_expecting(shared.for_keys.full[place.at], sizeof shared.keys[0]);
            copy_step<T, S::kD>(shared.keys[place.at], maps.keys, shared.for_keys.full[place.at],
                                args, work, step);
        }
    }
    wait(shared.for_q.empty[q.at], q.parity ^ 1);
    shared.work[q.at].n = 0;
    arrive(shared.for_q.full[q.at]);
}

// One warp: starts the copies of all values. Rows after the length have probability 0, but 0 times
// uninitialised memory may be NaN, so the warp clears those rows after they arrive.
template <class T, class S>
__device__ void copy_values(Shared<T, S>& shared, const Maps& maps, const AttentionArgs& args) {
    const int lane = threadIdx.x % 32;
    Schedule<S> schedule(args);
    Place<S::kBuffers> place;
    uint32_t patched = 0;  // parity
    for (Work work; schedule.next(work);)
        for (int step = 0; step < work.steps; ++step, place.advance()) {
            const int kept = work.length - step * kKeys;
            // Rows after the capacity of one block arrive as zeros.
            const bool patch = kept < kKeys && (args.blocks > 1 || work.length < args.capacity);
            uint64_t& full = shared.for_values.full[place.at];
            uint64_t& arrived = patch ? shared.patched : full;
            auto& values = shared.values[place.at];
            wait(shared.for_values.empty[place.at], place.parity ^ 1);
            if (lane == 0) {
                arrive_expecting(arrived, sizeof values);
                copy_step<T, S::kD>(values, maps.values, arrived, args, work, step);
            }
            if (!patch) continue;
            wait(arrived, patched);
            patched ^= 1;
            constexpr int kPacks = kRow * sizeof(T) / 16;  // per row
            for (int part = 0; part < S::kD / kRow; ++part)
                for (int i = kept * kPacks + lane; i < kKeys * kPacks; i += 32)
                    reinterpret_cast<uint4*>(values[part])[i] = {};
            fence_stores();
            __syncwarp();
            if (lane == 0) arrive(full);
        }
}

// One warp: writes zeros for queries that see no keys.
template <class S>
__device__ void write_zeros(const AttentionArgs& args) {
    Schedule<S> schedule(args);
    for (Work work; schedule.next(work, true);)
        for (int j = work.first; j < min(work.first + S::kQueries, work.n); ++j)
            for (int c = threadIdx.x % 32; c < S::kD; c += 32)
                store_any(args.out, args.out_type,
                          (int64_t{work.start + j} * args.heads + work.h) * S::kD + c, 0.0f);
}

}  // namespace hark::cuda::wgmma
