// linear for many rows on Hopper, with the exact GELU or of e4m3; data movement: shared memory, the
// order of the tiles, and the thread that starts the copies.
#pragma once

#include <algorithm>

#include "kernels/cuda/hopper.cuh"

namespace hark::cuda::gemm_wgmma {

using namespace hopper;

// Columns of K per stage: the swizzle's 128 bytes.
template <class T>
inline constexpr int kDepth = 128 / sizeof(T);
inline constexpr int kOutputs = 128;    // per tile
inline constexpr int kPair = 2;         // blocks per cluster, with neighbouring outputs
inline constexpr int kGroup = 128;      // threads per warpgroup
inline constexpr int kMultiplying = 2;  // warpgroups, each with every other tile
inline constexpr int kThreads = kGroup * (kMultiplying + 1);
inline constexpr int kRegisters = 240, kCopyRegisters = 24;
inline constexpr int kBand = 8;  // tiles of rows that share their weights in time

// A tile of 64 * Parts rows by 128 outputs belongs to one warpgroup: its sums are 64 * Parts
// registers per thread.
template <int Parts>
struct Shape {
    static constexpr int kParts = Parts, kRows = 64 * Parts, kStages = Parts == 3 ? 5 : 6;
    static constexpr int kOutputs = gemm_wgmma::kOutputs;
};

// y (rows, n with `stride` columns) = GELU(x (rows, K) W^T + bias); of e4m3 the GELU is optional,
// and rows of x and W have scales.
struct Product {
    void* y;
    const float* bias;
    Dtype y_type;
    int64_t rows, n, stride;
    int steps;      // of kDepth columns
    bool wide;      // y can be written in 16 bytes
    bool uploaded;  // no kernel has written W: it can be read before the previous kernels end
    // Of e4m3.
    const float *x_scales, *w_scales;
    const void* residual;  // as y, or null
    bool gelu;
};

struct Maps {
    CUtensorMap x, w;
};

// Scales of a warpgroup's tile and its previous one.
template <class S>
struct Scales {
    float x[kMultiplying][2][S::kRows], w[kMultiplying][2][kOutputs];
};
struct NoScales {};

template <class T, class S>
struct Shared {
    T x[S::kStages][S::kRows][kDepth<T>];
    T w[S::kStages][kOutputs][kDepth<T>];
    float bias[kMultiplying][2][kOutputs];  // as Scales
    std::conditional_t<sizeof(T) == 1, Scales<S>, NoScales> scales;
    uint64_t full[S::kStages], empty[S::kStages];
};

// The tiles of a cluster, S::kRows by S::kOutputs each, in order; its blocks have neighbouring
// outputs. Clusters that run at the same time have the rows of one band and neighbouring outputs.
template <class S>
class Schedule {
  public:
    __device__ Schedule(int64_t rows, int64_t n, int rank)
        : row_tiles_(static_cast<int>((rows + S::kRows - 1) / S::kRows)),
          pairs_(static_cast<int>((n + kPair * S::kOutputs - 1) / (kPair * S::kOutputs))),
          rank_(rank),
          index_(static_cast<int>(blockIdx.x) / kPair) {}

    __device__ bool has_tile() const { return index_ < row_tiles_ * pairs_; }
    __device__ void advance() { index_ += static_cast<int>(gridDim.x) / kPair; }

    // The first row and output of the tile.
    __device__ void place(int& row, int& output) const {
        const int band = index_ / (kBand * pairs_), in_band = index_ - band * kBand * pairs_;
        const int rows = min(kBand, row_tiles_ - band * kBand);
        row = (band * kBand + in_band % rows) * S::kRows;
        output = (in_band / rows * kPair + rank_) * S::kOutputs;
    }

  private:
    int row_tiles_, pairs_, rank_, index_;
};

// One thread: starts the copies of all tiles, start_w(stage, step, output) and start_x(stage, step,
// row). Both blocks of a cluster need the same rows of x: each copies half of them to both, so a
// stage is free once the warps of both have read it. uploaded: as Product's.
template <class S, class StartW, class StartX>
__device__ void copy_tiles(Schedule<S> tiles, int steps, bool uploaded,
                           uint64_t (&empty)[S::kStages], const StartW& start_w,
                           const StartX& start_x) {
    Place<S::kStages> place;
    int row = 0, output = 0;
    tiles.place(row, output);
    // The first stages are empty, and weights can be read before the previous kernels end.
    const int early = uploaded ? min(steps, S::kStages) : 0;
    for (int step = 0; step < early; ++step) start_w(step, step, output);
    pdl_wait();
    for (int step = 0; step < early; ++step) start_x(step, step, row);
    place.advance(early);
    for (int step = early; tiles.has_tile(); step = 0) {
        tiles.place(row, output);
        for (; step < steps; ++step, place.advance()) {
            wait(empty[place.at], place.parity ^ 1);
            start_w(place.at, step, output);
            start_x(place.at, step, row);
        }
        tiles.advance();
    }
}

// Makes the barriers of a block's stages, each of which `readers` warps of the cluster read. By all
// threads of the cluster.
template <int N>
__device__ inline void make_barriers(const Maps& maps, uint64_t (&full)[N], uint64_t (&empty)[N],
                                     int readers) {
    if (threadIdx.x == 0) {
        prefetch_map(maps.x);
        prefetch_map(maps.w);
        for (int i = 0; i < N; ++i) {
            init(full[i], 1);
            init(empty[i], readers);
        }
        fence_init();
    }
    sync_cluster();
}

// Turns of the warpgroups at the matrix units: one's products follow the other's. A barrier of a
// stage distinguishes two successive phases only, so nobody may wait for a later one.
__device__ inline void wait_for_turn(int group) { sync_part(3 + group, 2 * kGroup); }
__device__ inline void pass_turn(int group) { arrive_part(3 + (group ^ 1), 2 * kGroup); }

}  // namespace hark::cuda::gemm_wgmma
