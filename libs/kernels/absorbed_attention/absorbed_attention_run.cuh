// The parts of attend_kernel (absorbed_attention_splits.cu): the layout of shared memory, the keys
// that a block reads, their copies, and the computation of a warp.
#pragma once

#include <cuda_pipeline.h>

#include "kernels/absorbed_attention/absorbed_attention.cuh"
#include "kernels/attention/attention_kernels.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {

constexpr int kComputing = 32 * kAbsorbedWarps;  // threads
constexpr int kCopying = 128;                  // on Hopper; only one warp of them works
constexpr int kThreads = kComputing + (HARK_HOPPER_CODE ? kCopying : 0);
constexpr int kStage = 16;  // keys
constexpr int kMostStages = 5;
constexpr int kNever = -1;
constexpr int64_t kMostAsked = 16 << 20, kMostKept = 64 << 20;  // bytes

inline int64_t key_bytes(const AbsorbedArgs& args) {
    return int64_t{args.rows} * args.splits * args.split_keys * args.c * 2;
}
// Whether the L2 cache evicts the keys first: they do not stay there until the next layer.
inline bool evicts_keys(const AbsorbedArgs& args) {
    return args.one_each && key_bytes(args) > kMostKept;
}

// Shared memory of a block for `heads` heads in tiles of 8.
struct Layout {
    int pitch;  // bytes per key; 8 rows of a fragment hit all banks
    int scores, powers, kept, arrived, read, bytes;

    __host__ __device__ Layout(int c, int heads, int head_tiles, int keys, int stages)
        : pitch(2 * c + 16) {
        scores = stages * kStage * pitch;
        powers = scores + kAbsorbedWarps * heads * (keys + 4) * 4;
        kept = powers + head_tiles * 8 * (keys + 8) * 2;
        arrived = kept + head_tiles * 8 * 4;
        read = arrived + kMostStages * 8;
        bytes = read + kMostStages * 8;
    }
};

// A range of keys for one row and `HeadTiles` tiles of heads.
struct Item {
    int split, row, first_tile;

    __device__ Item(const AbsorbedArgs& args, int index, int groups, int head_tiles) {
        split = index % args.splits;
        first_tile = index / args.splits % groups * head_tiles;
        row = index / args.splits / groups;
    }
};

// The sequence of a row, or kNever; called by all lanes of a warp.
__device__ inline int sequence_of(const AbsorbedArgs& args, int row) {
    if (args.one_each) return row;
    int found = kNever;
    for (int b = threadIdx.x % 32; b < args.sequences; b += 32)
        if (args.query_start[b] <= row && row < args.query_start[b + 1]) found = b;
    return __reduce_max_sync(0xffffffff, found);
}

// The keys of an item: `count` rows of X from `first`. If slot or length is out of range, count is
// 0 and `valid` is false.
template <class T>
struct Keys {
    const T* first = nullptr;
    int count = 0;
    bool valid = false;

    Keys() = default;
    __device__ Keys(const AbsorbedArgs& args, const Item& item) {
        const int b = sequence_of(args, args.first_row + item.row);
        const int slot = b == kNever ? -1 : args.slot[b], length = b == kNever ? 0 : args.length[b];
        valid = 0 <= slot && slot < args.slots && 0 <= length && length <= args.frames;
        if (!valid) return;
        count = min(max(length - item.split * args.split_keys, 0), args.split_keys);
        first = static_cast<const T*>(args.encoder_out) +
                (int64_t{slot} * args.frames + item.split * args.split_keys) * args.c;
    }
    // Past the last key, returns the last key again; its weight is zero.
    __device__ const T* at(int key, int c) const {
        return first + int64_t{min(key, count - 1)} * c;
    }
};

// Synchronises all threads that compute.
__device__ inline void synchronise() {
    asm volatile("bar.sync 1, %0;" ::"n"(kComputing) : "memory");
}

#if HARK_HOPPER_CODE
// cp.async.bulk of a key, with an L2 cache policy.
__device__ inline void copy_key(unsigned char* to, const void* from, int bytes, uint64_t& arrived,
                                uint64_t policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(hopper::shared_address(to)),
        "l"(from), "r"(bytes), "r"(hopper::shared_address(&arrived)), "l"(policy)
        : "memory");
}
#endif

// Copies the keys of the block's items, one item after another, to the ring of stages. On Hopper a
// warp of its own lets the copy engine do it, one key per lane, which gives each key its pitch.
template <class T, int HeadTiles, int TileKeys>
struct Copies {
    const AbsorbedArgs& args;
    unsigned char* ring;
    int pitch, groups, items, item, stage = 0, last = 0;
    Keys<T> keys;

    __device__ Copies(const AbsorbedArgs& args, unsigned char* ring, int pitch, int groups,
                      int items)
        : args(args), ring(ring), pitch(pitch), groups(groups), items(items), item(blockIdx.x) {
        find();
    }
    __device__ bool has() const { return item < items; }
    // Moves `item` to the next item that has keys.
    __device__ void find() {
        for (; item < items; item += gridDim.x) {
            keys = Keys<T>(args, Item(args, item, groups, HeadTiles));
            last = (keys.count + TileKeys - 1) / TileKeys * (TileKeys / kStage);
            stage = 0;
            if (last > 0) return;
        }
    }
    __device__ void advance() {
        if (++stage < last) return;
        item += gridDim.x;
        find();
    }
#if HARK_HOPPER_CODE
    // Copies all stages, each once all warps have read its old content. Called by one warp. If
    // `evict`, the L2 cache evicts these keys first.
    __device__ void run(uint64_t* arrived, uint64_t* read, int stages, bool evict) {
        const int lane = threadIdx.x % 32;
        const uint64_t policy = hopper::cache_policy(evict);
        int place = 0;
        for (uint32_t parity = 1; has(); advance()) {
            hopper::wait(read[place], parity);
            if (lane == 0) hopper::arrive_expecting(arrived[place], kStage * 2 * args.c);
            __syncwarp();
            if (lane < kStage)
                copy_key(ring + (place * kStage + lane) * pitch,
                         keys.at(stage * kStage + lane, args.c), 2 * args.c, arrived[place],
                         policy);
            if (++place == stages) place = 0, parity ^= 1;
        }
    }
#else
    // Starts the copy of the next stage, if there is one. Called by all threads.
    __device__ void next(int place) {
        constexpr int kRows = kStage / kAbsorbedWarps;
        const int lane = threadIdx.x % 32, first_row = threadIdx.x / 32 * kRows;
        unsigned char* to = ring + (place * kStage + first_row) * pitch;
        for (int i = 0; i < kRows && has(); ++i) {
            const T* from = keys.at(stage * kStage + first_row + i, args.c);
            for (int chunk = lane; chunk < args.c / 8; chunk += 32)
                __pipeline_memcpy_async(to + i * pitch + chunk * 16, from + chunk * 8, 16);
        }
        __pipeline_commit();
        if (has()) advance();
    }
#endif
};

// Transposes an 8 x 8 matrix that is spread over the warp: lane 4 g + t has row g, columns 2t and
// 2t + 1.
__device__ inline uint32_t transposed(uint32_t pair) {
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(pair) : "r"(pair));
    return pair;
}

// The largest value of a warp. Read as integers, with the negative ones reversed, floats keep their
// order.
__device__ inline float largest_of_warp(float x) {
    const auto turned = [](int bits) { return bits ^ (bits >> 31 & 0x7fffffff); };
    return __int_as_float(turned(__reduce_max_sync(0xffffffff, turned(__float_as_int(x)))));
}

// State of a warp for one item. Steps is C / 128 at most; 10 means exactly 10.
template <class T, int Steps, int HeadTiles, int TileKeys>
struct Run {
    static constexpr int kTileStages = TileKeys / kStage, kScorePitch = TileKeys + 4;
    static constexpr int kPowerPitch = TileKeys + 8;

    int steps, heads, pitch;
    float* scores;  // (warps, heads, kScorePitch)
    T* powers;      // (heads, kPowerPitch)
    float* kept;    // (heads): factor for the sums so far; at the end 1 / their total
    uint2 q[Steps][HeadTiles];
    float sums[Steps][HeadTiles][4];             // columns x heads
    float largest[HeadTiles], total[HeadTiles];  // of heads warp + 8 j

    __device__ __forceinline__ void begin(const AbsorbedArgs& args, const Item& item) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4;
        const uint2* from =
            args.absorbed +
            ((int64_t{item.row} * args.blocks() + warp * steps) * args.head_tiles() +
             item.first_tile) *
                32 +
            lane;
#pragma unroll
        for (int k = 0; k < Steps; ++k)
#pragma unroll
            for (int n = 0; n < HeadTiles; ++n) {
                q[k][n] = k < steps && n * 8 + g < heads ? from[(k * args.head_tiles() + n) * 32]
                                                         : uint2{0, 0};
#pragma unroll
                for (int j = 0; j < 4; ++j) sums[k][n][j] = 0;
            }
#pragma unroll
        for (int j = 0; j < HeadTiles; ++j) largest[j] = -INFINITY, total[j] = 0;
    }

    // The warp's part of the tile's scores. `stage` points to the warp's columns.
    __device__ __forceinline__ void score(const unsigned char* const (&stage)[kTileStages]) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        float part[kTileStages][HeadTiles][4] = {};
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            if (k >= steps) break;
#pragma unroll
            for (int i = 0; i < kTileStages; ++i) {
                uint32_t x[4];  // keys 0-7 and 8-15, then the same of the next 8 columns
                load_matrices<false>(x, stage[i] + lane % 16 * pitch + lane / 16 * 16 + k * 32);
                const uint32_t low[2] = {x[0], x[2]}, high[2] = {x[1], x[3]};
#pragma unroll
                for (int n = 0; n < HeadTiles; ++n) {
                    const uint32_t head[2] = {q[k][n].x, q[k][n].y};
                    multiply_add<T>(part[i][n], low, high, head);
                }
            }
        }
#pragma unroll
        for (int n = 0; n < HeadTiles; ++n) {
            if (n * 8 + 2 * t >= heads) break;
            float* to = scores + (warp * heads + n * 8 + 2 * t) * kScorePitch + g;
#pragma unroll
            for (int i = 0; i < kTileStages; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    to[j % 2 * kScorePitch + i * kStage + j / 2 * 8] = part[i][n][j];
        }
    }

    // Scores become powers: a warp computes every eighth head, a lane one key. `count`: keys in the
    // tile. Results of missing heads are computed and dropped, so that no head waits for another.
    __device__ __forceinline__ void soften(int count) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        float score[HeadTiles];
#pragma unroll
        for (int j = 0; j < HeadTiles; ++j) {
            const float* from =
                scores + min(warp + 8 * j, heads - 1) * kScorePitch + lane % TileKeys;
            float part[kAbsorbedWarps];
#pragma unroll
            for (int w = 0; w < kAbsorbedWarps; ++w) part[w] = from[w * heads * kScorePitch];
#pragma unroll
            for (int step = 1; step < kAbsorbedWarps; step *= 2)
#pragma unroll
                for (int w = 0; w < kAbsorbedWarps; w += 2 * step)
                    part[w] = __fadd_rn(part[w], part[w + step]);
            score[j] = lane < min(count, TileKeys) ? part[0] : -INFINITY;
        }
#pragma unroll
        for (int j = 0; j < HeadTiles; ++j) {
            const int h = warp + 8 * j;
            const float highest = fmaxf(largest[j], largest_of_warp(score[j]));
            const float factor = exp2_fast(largest[j] - highest);
            const T power = from_f32<T>(exp2_fast(score[j] - highest));
            largest[j] = highest;
            total[j] = __fmaf_rn(total[j], factor, to_f32(power));
            if (h < heads && lane < TileKeys) powers[h * kPowerPitch + lane] = power;
            if (h < heads && lane == 0) kept[h] = factor;
        }
    }

    // sums = sums * kept + X^T powers
    __device__ __forceinline__ void add(const unsigned char* const (&stage)[kTileStages]) {
        const int lane = threadIdx.x % 32, t = lane % 4;
        uint32_t p[HeadTiles][4];  // keys 0-7, 8-15, 16-23, 24-31
        float2 factors[HeadTiles];
        bool changed = false;
#pragma unroll
        for (int n = 0; n < HeadTiles; ++n) {
            load_matrices<false>(
                p[n], powers + (n * 8 + lane % 8) * kPowerPitch + lane / 8 % (TileKeys / 8) * 8);
            factors[n] = *reinterpret_cast<const float2*>(kept + n * 8 + 2 * t);
            changed = changed || factors[n].x != 1 || factors[n].y != 1;
        }
        if (__any_sync(0xffffffff, changed)) {
#pragma unroll
            for (int k = 0; k < Steps; ++k)
#pragma unroll
                for (int n = 0; n < HeadTiles; ++n)
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        sums[k][n][j] =
                            __fmul_rn(sums[k][n][j], j % 2 == 0 ? factors[n].x : factors[n].y);
        }
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            if (k >= steps) break;
#pragma unroll
            for (int i = 0; i < kTileStages; ++i) {
                uint32_t x[4];  // columns 0-7 and 8-15, then the same of the next 8 keys
                load_matrices<true>(
                    x, stage[i] + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 16 + k * 32);
                const uint32_t low[2] = {x[0], x[2]}, high[2] = {x[1], x[3]};
#pragma unroll
                for (int n = 0; n < HeadTiles; ++n) {
                    const uint32_t head[2] = {p[n][2 * i], p[n][2 * i + 1]};
                    multiply_add<T>(sums[k][n], low, high, head);
                }
            }
        }
    }

    // Writes the item's part of the result.
    __device__ __forceinline__ void end(const AbsorbedArgs& args, const Item& item) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const int64_t first_head = int64_t{item.row} * args.heads + item.first_tile * 8;
        synchronise();  // all have read `kept` of the last tile
#pragma unroll
        for (int j = 0; j < HeadTiles; ++j) {
            const int h = warp + 8 * j;
            if (h >= heads) break;
            const float sum = warp_sum(total[j]);
            if (lane == 0) {
                kept[h] = __frcp_rn(sum);
                args.row_max_sum[(first_head + h) * args.splits + item.split] = {largest[j], sum};
            }
        }
        synchronise();
#pragma unroll
        for (int n = 0; n < HeadTiles; ++n) {
            const int h = n * 8 + g;
            const float2 inverse = *reinterpret_cast<const float2*>(kept + n * 8 + 2 * t);
            uint2* to = args.parts +
                        ((int64_t{item.row} * args.splits + item.split) * args.heads +
                         item.first_tile * 8 + h) *
                            args.blocks() * 4 +
                        warp * steps * 4 + t;
#pragma unroll
            for (int k = 0; k < Steps; ++k) {
                if (k >= steps) break;
                const float(&s)[4] = sums[k][n];
                const uint2 both = {transposed(pack(T{}, s[0] * inverse.x, s[1] * inverse.y)),
                                    transposed(pack(T{}, s[2] * inverse.x, s[3] * inverse.y))};
                if (h < heads) to[k * 4] = both;
            }
        }
    }
};

}  // namespace hark::cuda
