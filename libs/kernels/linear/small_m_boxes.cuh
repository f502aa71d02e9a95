// box_kernel: linear of small batches on Hopper, both operands in boxes that the copy engine brings
// to shared memory, multiplied by mma.m16n8k16 in the steps and slices of small_m_mma.cuh.
//
// wgmma takes 16 neighbouring columns per step, so batch_kernel copies 8 bytes at a time to the
// place of their step. A warp's own loads take any columns: here boxes stay as they are in memory.
#pragma once

#include "kernels/cuda/hopper.cuh"
#include "kernels/linear/small_m_mma.cuh"
#include "kernels/linear/small_m_work.cuh"

namespace hark::cuda::small_m_boxes {

using small_m_work::Barriers, small_m_work::Work;

using namespace hopper;

inline constexpr int kOutputTiles = 2;  // of 16, per warp
inline constexpr int kComputingWarps = 8;
inline constexpr int kComputing = 32 * kComputingWarps;
inline constexpr int kThreads = kComputing + 32;  // the last warp copies
inline constexpr int kVector = 8;                 // neighbours of y that a thread writes

// A block has a tile of `Rows` rows by `Outputs`. The `Split` blocks of a cluster share a tile:
// each sums some slices, and finishes a part of the quads, which are the sums of one mma of each
// warp.
template <int Rows, int Outputs, int Split, int Stages>
struct Shape {
    static constexpr int kRows = Rows, kOutputs = Outputs, kSplit = Split, kStages = Stages;
    static constexpr int kOutputWarps = Outputs / 16 / kOutputTiles;
    static constexpr int kRowWarps = kComputingWarps / kOutputWarps;
    static constexpr int kRowTiles = Rows / kRowWarps / 8;  // of 8, per warp
    static constexpr int kQuads = kOutputTiles * kRowTiles;
    static constexpr int kMostMine = (kQuads + Split - 1) / Split;
    static constexpr int kStageBytes = (Rows + Outputs) * kUnit * 2;
    static constexpr int kSlotBytes = kMostMine * kComputing * int{sizeof(float4)};
    static constexpr int kPitch = Outputs + 8;  // of sums in shared memory: a warp hits all banks
    static_assert(Split <= kQuads && Rows * kPitch * 4 <= Stages * kStageBytes);

    // The first quad that a block of the cluster finishes.
    __device__ static constexpr int first_quad(int rank) { return rank * kQuads / Split; }
    // The warp's first row and output.
    __device__ static int warp_row(int warp) { return warp % kRowWarps * kRowTiles * 8; }
    __device__ static int warp_output(int warp) { return warp / kRowWarps * kOutputTiles * 16; }
};

struct Maps {
    CUtensorMap x, w;
};

template <class S>
Maps maps_of(const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    const auto k = static_cast<uint64_t>(args.k);
    const auto map = [&](const Tensor& of, int64_t rows, uint32_t box) {
        return tile_map(of.dtype, of.data, {k, static_cast<uint64_t>(rows)}, {k * 2}, {kUnit, box});
    };
    return {map(x, args.rows, S::kRows), map(w, args.n, S::kOutputs)};
}

// The row of 8 that lane 4 g + t has as its g-th: two neighbours g are 4 rows apart, so their
// chunks, swizzled by the row, hit different banks.
__device__ inline int row_of(int g) { return g / 2 + g % 2 * 4; }

// One thread: starts all copies of a block.
template <class S>
__device__ void copy_units(unsigned char* stages, Barriers<S>& barriers, const Maps& maps,
                           const SmallMArgs& args, const Work<S>& work) {
    const int begin = args.slice_begin(work.slice), end = args.slice_begin(work.last);
    const auto start_w = [&](int at, int unit) {
        arrive_expecting(barriers.full[at], S::kStageBytes);
        copy_box(stages + at * S::kStageBytes + S::kRows * kUnit * 2, maps.w, barriers.full[at],
                 unit * kUnit, work.n);
    };
    const auto start_x = [&](int at, int unit) {
        copy_box(stages + at * S::kStageBytes, maps.x, barriers.full[at], unit * kUnit, work.row);
    };
    // The first stages are empty, and weights can be read before the previous kernels end.
    const int early = min(end - begin, S::kStages);
    for (int i = 0; i < early; ++i) start_w(i, begin + i);
    pdl_wait();
    for (int i = 0; i < early; ++i) start_x(i, begin + i);
    Place<S::kStages> place;
    place.advance(early);
    for (int unit = begin + early; unit < end; ++unit, place.advance()) {
        wait(barriers.empty[place.at], place.parity ^ 1);
        start_w(place.at, unit);
        start_x(place.at, unit);
    }
}

// The sums of a warp: kOutputTiles tiles of 16 outputs by NT tiles of 8 rows.
template <class S>
using Sums = float[kOutputTiles][S::kRowTiles][4];

// The operands of a warp for 32 columns, which are two steps.
template <class S>
struct Operands {
    Half w[kOutputTiles][2], x[S::kRowTiles];

    // From a stage; `half`: of its columns.
    __device__ __forceinline__ void load(const unsigned char* stage, int half) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const int row = row_of(g), chunk = ((t + 4 * half) ^ row) * 16;
        const auto chunk_of_row = [&](int first_row) {
            return as_half(
                *reinterpret_cast<const uint4*>(stage + (first_row + row) * 128 + chunk));
        };
#pragma unroll
        for (int i = 0; i < 2 * kOutputTiles; ++i)
            w[i / 2][i % 2] = chunk_of_row(S::kRows + S::warp_output(warp) + 8 * i);
#pragma unroll
        for (int j = 0; j < S::kRowTiles; ++j) x[j] = chunk_of_row(S::warp_row(warp) + 8 * j);
    }
};

// A warp: multiplies the units of one slice. The next operands are loaded while it multiplies.
template <class T, class S>
__device__ __forceinline__ void sum_slice(Sums<S>& sums, const unsigned char* stages,
                                          Barriers<S>& barriers, Place<S::kStages>& place,
                                          int units) {
    constexpr int MT = kOutputTiles, NT = S::kRowTiles;
#pragma unroll
    for (int i = 0; i < MT * NT * 4; ++i) sums[i / (NT * 4)][i / 4 % NT][i % 4] = 0;
    const auto stage = [&] { return stages + place.at * S::kStageBytes; };
    Operands<S> low, high;  // a unit's first columns and its last
    wait(barriers.full[place.at], place.parity);
    low.load(stage(), 0);
#pragma unroll 1
    for (int unit = 0; unit < units; ++unit) {
        high.load(stage(), 1);
        multiply_halves<T, MT, NT>(sums, low.w, low.x);
        const int read = place.at;
        place.advance();
        if (unit + 1 < units) {
            wait(barriers.full[place.at], place.parity);
            low.load(stage(), 0);
        }
        multiply_halves<T, MT, NT>(sums, high.w, high.x);
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(barriers.empty[read]);
    }
}

template <class S>
__device__ inline void add(Sums<S>& to, const Sums<S>& sums) {
#pragma unroll
    for (int i = 0; i < kOutputTiles; ++i)
#pragma unroll
        for (int j = 0; j < S::kRowTiles; ++j)
#pragma unroll
            for (int v = 0; v < 4; ++v) to[i][j][v] = __fadd_rn(to[i][j][v], sums[i][j][v]);
}

// Sends each quad to slot `slot` of the block that finishes it.
template <class S>
__device__ void send_quads(const Sums<S>& sums, const unsigned char* slots, int slot) {
#pragma unroll
    for (int rank = 0; rank < S::kSplit; ++rank) {
        const int first = S::first_quad(rank);
        const uint32_t to =
            address_in(rank, slots + slot * S::kSlotBytes + threadIdx.x * sizeof(float4));
#pragma unroll
        for (int q = first; q < S::first_quad(rank + 1); ++q)
            send(to + (q - first) * kComputing * sizeof(float4), sums[q % 2][q / 2]);
    }
}

// Quad q of a warp as rows of sums: lane 4 g + t has outputs row_of(g) and those 8 further, rows t
// and t + 4.
template <class S>
__device__ inline void store_quad(float* rows, const float (&quad)[4], int q) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int row = S::warp_row(warp) + q / 2 * 8 + t;
    const int n = S::warp_output(warp) + q % 2 * 16 + row_of(g);
#pragma unroll
    for (int v = 0; v < 4; ++v) rows[(row + v % 2 * 4) * S::kPitch + n + v / 2 * 8] = quad[v];
}

// Where the i-th vector of kVector neighbours of the block's quads is in the tile.
template <class S>
struct Vector {
    static constexpr int kPerWarp = 16, kPerQuad = kComputingWarps * kPerWarp;  // 8 rows by 2
    int row, n;

    __device__ Vector(int first_quad, int i) {
        const int q = first_quad + i / kPerQuad, part = i % kPerWarp;
        const int warp = i / kPerWarp % kComputingWarps;
        n = S::warp_output(warp) + q % 2 * 16 + part % 2 * kVector;
        row = S::warp_row(warp) + q / 2 * 8 + part / 2;
    }
};

// Finishes the block's quads, whose sums are in shared memory as rows, and writes them. Called by
// the computing threads.
template <class T, class S>
class Finish {
  public:
    __device__ Finish(const SmallMArgs& args, const Work<S>& work)
        : args_(args),
          work_(work),
          first_(S::first_quad(work.rank)),
          count_((S::first_quad(work.rank + 1) - first_) * Vector<S>::kPerQuad) {
        load_residual(threadIdx.x);
    }
    __device__ void operator()(const float* rows, const EpilogueParams* columns) {
#pragma unroll 1
        for (int i = threadIdx.x; i < count_; i += kComputing) {
            const Pack<T, kVector> residual = residual_;
            load_residual(i + kComputing);
            const Vector<S> at(first_, i);
            if (!is_there(at)) continue;
            const Pack<float, kVector> sum = load_pack<kVector>(rows + at.row * S::kPitch + at.n);
            Pack<T, kVector> y;
#pragma unroll
            for (int v = 0; v < kVector; ++v)
                y.values[v] = from_f32<T>(apply_epilogue(args_, columns[at.n + v], sum.values[v],
                                                         to_f32(residual.values[v])));
            *reinterpret_cast<Pack<T, kVector>*>(static_cast<T*>(args_.y) + place(at)) = y;
        }
    }

  private:
    __device__ bool is_there(const Vector<S>& at) const {
        return work_.row + at.row < args_.rows && work_.n + at.n < args_.n;
    }
    __device__ int64_t place(const Vector<S>& at) const {
        return int64_t{work_.row + at.row} * args_.n + work_.n + at.n;
    }
    // Loads the residual of the i-th vector before it is finished.
    __device__ void load_residual(int i) {
        residual_ = {};
        if (!args_.residual || i >= count_) return;
        const Vector<S> at(first_, i);
        if (is_there(at))
            residual_ = load_pack<kVector>(static_cast<const T*>(args_.residual) + place(at));
    }

    const SmallMArgs& args_;
    const Work<S>& work_;
    int first_, count_;
    Pack<T, kVector> residual_;
};

// One thread, before the block's first barrier.
template <class S>
__device__ __forceinline__ void begin_copies(const Maps& maps, Barriers<S>& barriers) {
    prefetch_map(maps.x);
    prefetch_map(maps.w);
    for (int i = 0; i < S::kStages; ++i) {
        init(barriers.full[i], 1);
        init(barriers.empty[i], kComputingWarps);
    }
    fence_init();
}

// The computing threads: sums the block's slices, takes part in the exchange, and leaves the sums
// that the block finishes in shared memory as rows, in place of the stages.
template <class T, class S>
__device__ __forceinline__ void compute(unsigned char* stages, const unsigned char* slots,
                                        Barriers<S>& barriers, const SmallMArgs& args,
                                        const Work<S>& work) {
    Sums<S> totals = {}, sums;
    Place<S::kStages> place;
#pragma unroll 1
    for (int slice = work.slice; slice < work.last; ++slice) {
        sum_slice<T, S>(sums, stages, barriers, place,
                        args.slice_begin(slice + 1) - args.slice_begin(slice));
        if (S::kSplit == 1 || work.rank == 0) {
            add<S>(totals, sums);
        } else {
            send_quads<S>(sums, slots, 1 + slice - args.slices / S::kSplit);
        }
    }
    float* const rows = reinterpret_cast<float*>(stages);
    if constexpr (S::kSplit > 1) {
        if (work.rank == 0) send_quads<S>(totals, slots, 0);
        sync_cluster();
        // The first block's slices are one slot, each other slice is one.
        const int count = 1 + args.slices - args.slices / S::kSplit;
        const int first = S::first_quad(work.rank), end = S::first_quad(work.rank + 1);
        for (int q = first; q < end; ++q) {
            const auto* from =
                reinterpret_cast<const float4*>(slots) + (q - first) * kComputing + threadIdx.x;
            const float4 prefix = *from;
            float quad[4] = {prefix.x, prefix.y, prefix.z, prefix.w};
#pragma unroll 4
            for (int slot = 1; slot < count; ++slot) {
                const float4 part = from[slot * (S::kSlotBytes / sizeof(float4))];
                quad[0] = __fadd_rn(quad[0], part.x);
                quad[1] = __fadd_rn(quad[1], part.y);
                quad[2] = __fadd_rn(quad[2], part.z);
                quad[3] = __fadd_rn(quad[3], part.w);
            }
            store_quad<S>(rows, quad, q);
        }
    } else {
        sync_part(1, kComputing);  // all have read the stages
#pragma unroll
        for (int q = 0; q < S::kQuads; ++q) store_quad<S>(rows, totals[q % 2][q / 2], q);
    }
    sync_part(1, kComputing);
}

template <class T, class S>
__global__ void __launch_bounds__(kThreads, 1)
    box_kernel(const __grid_constant__ Maps maps, const __grid_constant__ SmallMArgs args) {
#if HARK_HOPPER_CODE
    pdl_trigger();
    extern __shared__ unsigned char memory[];
    __shared__ Barriers<S> barriers;
    __shared__ EpilogueParams columns[S::kOutputs];
    unsigned char* const stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    unsigned char* const slots = stages + S::kStages * S::kStageBytes;
    const Work<S> work(args);
    if (threadIdx.x == kComputing) begin_copies<S>(maps, barriers);
    __syncthreads();
    if (S::kSplit > 1) arrive_in_cluster();
    if (threadIdx.x >= kComputing) {
        if (threadIdx.x == kComputing) copy_units<S>(stages, barriers, maps, args, work);
        __syncwarp();
        pdl_wait();
        if (S::kSplit > 1) {
            wait_for_cluster();
            sync_cluster();
        }
        return;
    }
    if (threadIdx.x < S::kOutputs)
        columns[threadIdx.x] = epilogue_params(args, work.n + threadIdx.x);
    pdl_wait();
    Finish<T, S> finish(args, work);
    if (S::kSplit > 1) wait_for_cluster();  // the receiving blocks must be running
    compute<T, S>(stages, slots, barriers, args, work);
    finish(reinterpret_cast<const float*>(stages), columns);
#endif
}

}  // namespace hark::cuda::small_m_boxes
