// Search by one block, among up to millions of items, for the key at which a sum of weights
// reaches a target: the logit of the k-th token, the one at which p is reached, the token at which
// u is. Sums are of integers, so their order does not matter.
#pragma once

#include <cstdint>

namespace hark::sampling {

inline constexpr unsigned kAll = 0xffffffff;
inline constexpr int kThreads = 1024, kWarps = kThreads / 32;
inline constexpr int kBinBits = 11, kBins = 1 << kBinBits;
inline constexpr int kAtOnce = 8;  // items of a thread in flight at once
static_assert(kBins == 2 * kThreads);

struct SearchMemory {
    uint32_t low[kBins], high[kBins];  // the halves of a bin's sum of weights, of 64 bits
    uint64_t sums[kWarps];
    uint64_t above;
    int bin;
};

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % 32; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) / 32; }

// Unsigned integers in the order of the floats; both zeros are the same.
__device__ inline uint32_t key_of(float x) {
    const uint32_t bits = __float_as_uint(x + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline float float_of(uint32_t key) {
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}
// The lowest id has the largest key.
__device__ inline uint32_t key_of_id(int id) { return ~static_cast<uint32_t>(id); }

// The sum over the lanes up to this one.
__device__ inline uint64_t sum_to_lane(uint64_t x) {
    for (int step = 1; step < 32; step *= 2) {
        const uint64_t left = __shfl_up_sync(kAll, x, step);
        if (lane() >= step) x += left;
    }
    return x;
}

// The sum over all threads before this one, and the total.
__device__ inline uint64_t sum_before(uint64_t own, uint64_t& total, SearchMemory& s) {
    const uint64_t in_warp = sum_to_lane(own);
    if (lane() == 31) s.sums[warp()] = in_warp;
    __syncthreads();
    const uint64_t warps = sum_to_lane(s.sums[lane()]);
    total = __shfl_sync(kAll, warps, 31);
    const uint64_t before = __shfl_sync(kAll, warps, max(warp() - 1, 0));
    __syncthreads();
    return (warp() > 0 ? before : 0) + in_warp - own;
}

// Number of i in [0, count) for which the condition is true.
template <class Condition>
__device__ int number_of(int count, const Condition& condition, SearchMemory& s) {
    int own = 0;
#pragma unroll kAtOnce
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) own += condition(i);
    own = __reduce_add_sync(kAll, own);
    if (lane() == 0) s.sums[warp()] = static_cast<uint64_t>(own);
    __syncthreads();
    const int all = __reduce_add_sync(kAll, static_cast<int>(s.sums[lane()]));
    __syncthreads();
    return all;
}

// A range of keys that includes the one sought, the sum of the weights of all larger keys, and the
// target; 0 if the target is yet to be computed from the sum of all.
struct Range {
    uint32_t low, high;
    uint64_t above = 0, target = 0;
};

// Item i has key(i), and a weight(i) up to 2^31 that is read only if the key is in the range.
template <class Key, class Weight>
struct Items {
    int count;
    Key key;
    Weight weight;
};
template <class Key, class Weight>
Items(int, Key, Weight) -> Items<Key, Weight>;

// Adds to a sum in two halves: the carry of the lower one goes to the upper one.
__device__ inline void add_to_sum(SearchMemory& s, int bin, uint64_t weight) {
    const auto low = static_cast<uint32_t>(weight);
    auto high = static_cast<uint32_t>(weight >> 32);
    if (low && atomicAdd(&s.low[bin], low) > ~low) ++high;
    if (high) atomicAdd(&s.high[bin], high);
}

// Called by whole warps; bin -1: nothing. Neighbours often have the same bin, and their additions
// would wait for each other.
__device__ inline void add_to_bin(SearchMemory& s, int bin, uint32_t weight) {
    const unsigned there = __ballot_sync(kAll, bin >= 0);
    if (there == 0) return;
    const int one = __shfl_sync(kAll, bin, __ffs(static_cast<int>(there)) - 1);
    if (__all_sync(kAll, bin == one || bin < 0)) {
        const uint32_t low = __reduce_add_sync(kAll, weight & 0xffffu);
        const uint32_t high = __reduce_add_sync(kAll, weight >> 16);
        if (lane() == 0) add_to_sum(s, one, (uint64_t{high} << 16) + low);
    } else if (bin >= 0) {
        add_to_sum(s, bin, weight);
    }
}

__device__ inline uint64_t weight_of_bin(const SearchMemory& s, int bin) {
    return (uint64_t{s.high[bin]} << 32) + s.low[bin];
}

template <class Items>
__device__ void fill_bins(const Items& items, const Range& range, int shift, SearchMemory& s) {
    for (int first = 0; first < items.count; first += kAtOnce * kThreads) {
        uint32_t weights[kAtOnce];
        int bins[kAtOnce];
#pragma unroll
        for (int b = 0; b < kAtOnce; ++b) {
            const int i = first + b * kThreads + static_cast<int>(threadIdx.x);
            const uint32_t key = i < items.count ? items.key(i) : 0;
            const bool in_range = i < items.count && range.low <= key && key <= range.high;
            bins[b] = in_range ? static_cast<int>((key - range.low) >> shift) : -1;
            weights[b] = in_range ? items.weight(i) : 0;
        }
#pragma unroll
        for (int b = 0; b < kAtOnce; ++b)
            if (first + b * kThreads < items.count) add_to_bin(s, bins[b], weights[b]);
    }
}

// Narrows the range to the part, a 2048th, in which the sum of the weights, from the largest key
// down, reaches the target.
template <class Items, class Target>
__device__ Range narrowed(const Items& items, Range range, const Target& target_of,
                          SearchMemory& s) {
    const int shift = max(0, 32 - __clz(static_cast<int>(range.high - range.low)) - kBinBits);
    for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads)
        s.low[bin] = s.high[bin] = 0;
    if (threadIdx.x == 0) {
        s.bin = 0;
        s.above = range.above;
    }
    __syncthreads();
    fill_bins(items, range, shift, s);
    __syncthreads();
    const int top = kBins - 1 - 2 * static_cast<int>(threadIdx.x);
    const uint64_t first = weight_of_bin(s, top), second = weight_of_bin(s, top - 1);
    uint64_t total;
    const uint64_t before = range.above + sum_before(first + second, total, s);
    if (range.target == 0) range.target = target_of(total);
    if (before < range.target && before + first + second >= range.target) {
        const bool in_second = before + first < range.target;
        s.bin = top - in_second;
        s.above = before + (in_second ? first : 0);
    }
    __syncthreads();
    range.above = s.above;
    const uint32_t low = range.low + (static_cast<uint32_t>(s.bin) << shift);
    range.high = low + min(range.high - low, (1u << shift) - 1);
    range.low = low;
    __syncthreads();
    return range;
}

// The key at which the target is reached (low and high of the result), the sum above it, and the
// target.
template <class Items, class Target>
__device__ Range found(const Items& items, Range range, const Target& target_of, SearchMemory& s) {
    do {
        range = narrowed(items, range, target_of, s);
    } while (range.low < range.high);
    return range;
}

}  // namespace hark::sampling
