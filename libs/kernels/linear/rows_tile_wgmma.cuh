// A tile of up to 128 rows of x by 128 rows of W or more, multiplied by two warpgroups: what the
// products of 33 to 128 rows on Hopper share (medium_m_wgmma.cuh, streamed_m_wgmma.cuh).
#pragma once

#include "kernels/cuda/hopper_products.cuh"

namespace hark::cuda::rows_tile {

using namespace hopper;

inline constexpr int kGroup = 128;  // threads per warpgroup
inline constexpr int kMultiplyingThreads = 2 * kGroup;
inline constexpr int kThreads = kMultiplyingThreads + 32;  // the last warp copies

// A tile of 64 or 128 rows of x by `Outputs` of W: of 64 rows both warpgroups have all, else 64
// each.
template <int Rows, int Outputs>
struct TileShape {
    static constexpr int kRows = Rows, kOutputs = Outputs;
    static constexpr bool kSharesRows = Rows == 64;
    static constexpr int kColumns = kSharesRows ? kOutputs / 2 : kOutputs;  // of a warpgroup
    static constexpr int kSums = kColumns / 2;                              // per thread
    static constexpr int kStageBytes = (Rows + kOutputs) * 128;  // a row is the swizzle's 128 bytes
    static constexpr int kStride = kOutputs + 8;                 // floats of a row of sums
};

struct Maps {
    CUtensorMap x, w;
};

template <class S>
struct Barriers {
    uint64_t full[S::kStages], empty[S::kStages];

    // One thread: before a barrier of the block.
    __device__ void make(const Maps& maps) {
        prefetch_map(maps.x);
        prefetch_map(maps.w);
        for (int i = 0; i < S::kStages; ++i) {
            init(full[i], 1);
            init(empty[i], kMultiplyingThreads / 32);
        }
        fence_init();
    }
};

// Starts the copy of a stage's rows of W from `output` on. Of a gated product (up > 0) each
// warpgroup's columns are the gate's, then those `up` rows further.
template <class S>
__device__ inline void copy_weights(unsigned char* stage, const CUtensorMap& map, uint64_t& full,
                                    int column, int output, int up) {
    unsigned char* const w = stage + S::kRows * 128;
    if (up == 0) return copy_box(w, map, full, column, output);
    constexpr int kHalf = S::kColumns / 2;
    for (int i = 0; i < S::kOutputs / kHalf; ++i)
        copy_box(w + i * kHalf * 128, map, full, column, output + i / 2 * kHalf + i % 2 * up);
}

// Where a warpgroup's rows of x and of W begin in a stage, in bytes.
template <class S>
struct Factors {
    uint32_t x, w;

    __device__ explicit Factors(int group)
        : x(S::kSharesRows ? 0 : group * 64 * 128),
          w(S::kRows * 128 + (S::kSharesRows ? group * S::kColumns * 128 : 0)) {}
};

// Writes a thread's sums to the tile's rows, S::kStride apart: sums 4 j and 4 j + 1 are columns 8 j
// and 8 j + 1 of a row, the next two those of the row + 8.
template <class S>
__device__ inline void store_sums(float* memory, const float (&sums)[S::kSums]) {
    const int group = threadIdx.x / kGroup, thread = threadIdx.x % kGroup;
    const int row = thread / 32 * 16 + thread % 32 / 4 + (S::kSharesRows ? 0 : group * 64);
    const int column = (S::kSharesRows ? group * S::kColumns : 0) + 2 * (thread % 4);
#pragma unroll
    for (int i = 0; i < S::kSums; i += 2)
        *reinterpret_cast<float2*>(memory + (row + i % 4 * 4) * S::kStride + column + i / 4 * 8) = {
            sums[i], sums[i + 1]};
}

// Not inlined: code that is not run must not be between code that is.
__device__ __noinline__ inline float activate_any(float x, Activation f) { return activate(x, f); }

__device__ inline float4 four(const float* from) { return *reinterpret_cast<const float4*>(from); }

template <class Y>
__device__ inline void store_four(void* y, int64_t at, const float (&values)[4]) {
    Pack<Y, 4> out;
#pragma unroll
    for (int i = 0; i < 4; ++i) out.values[i] = from_f32<Y>(values[i]);
    *reinterpret_cast<Pack<Y, 4>*>(static_cast<Y*>(y) + at) = out;
}

}  // namespace hark::cuda::rows_tile
