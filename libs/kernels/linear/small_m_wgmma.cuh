// linear of small batches on Hopper, data movement: the shape of a block, the threads that copy
// both operands to shared memory, and the writing of y.
//
// A step of small_m_mma.cuh has 4 columns of each of a row's chunks of 8, but wgmma takes 16
// neighbours of a row in shared memory. So each copy moves 8 bytes to the place of its step; the
// copy engine (TMA) moves at least 16. Weights of a byte each pass through registers, where they
// are widened.
#pragma once

#include "kernels/cuda/hopper.cuh"
#include "kernels/linear/small_m_mma.cuh"
#include "kernels/linear/small_m_work.cuh"

namespace hark::cuda::small_m_wgmma {

using small_m_work::Barriers, small_m_work::Work;

using namespace hopper;

inline constexpr int kGroup = 128;  // threads per warpgroup

// A block multiplies 64 * Groups rows of x by `Outputs`, one warpgroup per 64 rows; one more copies
// `Stages` units ahead. The `Split` blocks of a cluster share a tile: each sums some slices, sends
// its sums to the others and finishes a part. The stages leave room for one block per
// multiprocessor: if two kernels overlapped, one multiprocessor would get two blocks and another
// none.
template <int Groups, int Outputs, int Stages, int Split = 1>
struct Shape {
    static constexpr int kRows = 64 * Groups, kOutputs = Outputs, kStages = Stages, kSplit = Split;
    static constexpr int kMultiplying = kGroup * Groups, kThreads = kMultiplying + kGroup;
    // The outputs that a block finishes: kMine times 8, of all rows.
    static constexpr int kMine = Outputs / 8 / Split, kOwn = 8 * kMine;
    static constexpr int kPitch = kOwn + 8;  // of sums in shared memory; a warp hits all banks
    static_assert(Outputs / 8 % Split == 0);
    static_assert(kRows * kPitch * 4 <= Stages * (kRows + Outputs) * kUnit * 2);
};

template <class T, class S>
struct Stage {
    T x[S::kRows][kUnit], w[S::kOutputs][kUnit];
};

// cp.async of 8 bytes, or of zeros if not `there`.
__device__ inline void copy_8(uint32_t to, const void* from, bool there) {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" ::"r"(to), "l"(from),
                 "r"(there ? 8 : 0)
                 : "memory");
}

__device__ inline void store_8(uint32_t to, const uint32_t (&pairs)[2]) {
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(pairs[0]), "r"(pairs[1])
                 : "memory");
}

// Where 4 neighbours of a unit are in shared memory: a quarter of a step's columns. W: of the
// weights (chunk_of).
template <class W>
struct Piece {
    int step, quarter;

    __device__ explicit Piece(int piece)
        : step(sizeof(W) == 1 ? piece % 4 : piece / 8 * 2 + piece % 2),
          quarter(sizeof(W) == 1 ? piece / 4 : piece / 2 % 4) {}
    // In a row, `row` % 8 of them, whose 16 bytes are swizzled as factor() takes them.
    __device__ int place(int row) const {
        return ((2 * step + quarter / 2) ^ (row % 8)) * 16 + quarter % 2 * 8;
    }
};

// Copies Rows rows of one operand, one unit at a time: a thread copies the same 4 columns of every
// eighth row. Past the last row it copies any row: the results are not written.
template <class T, class W, int Rows>
struct UnitCopy {
    const T* from;
    int offsets[Rows / 8];
    uint32_t to;  // in a stage

    __device__ UnitCopy(const T* all, int first_row, int64_t count, int64_t k, uint32_t stage_begin)
        : from(all + first_row * k) {
        const int piece = threadIdx.x % 16, row = threadIdx.x % kGroup / 16;
        const int rows = static_cast<int>(min(int64_t{Rows}, count - first_row));
#pragma unroll
        for (int i = 0; i < Rows / 8; ++i) {
            int at = row + 8 * i;
            if (rows < Rows) at %= rows;
            offsets[i] = at * static_cast<int>(k) + 4 * piece;
        }
        to = stage_begin + row * kUnit * sizeof(T) + Piece<W>(piece).place(row);
    }
    __device__ void start(uint32_t stage, int unit, bool there) const {
#pragma unroll
        for (int i = 0; i < Rows / 8; ++i)
            copy_8(stage + to + i * 8 * kUnit * sizeof(T),
                   from + (there ? offsets[i] + unit * kUnit : 0), there);
    }
};

// Widens Rows rows of weights of a byte each, one unit at a time: a thread has 16 columns, a
// quarter of each step, of every 32nd row. They are loaded kAhead units before they are stored.
template <class T, class W, int Rows>
struct WidenedCopy {
    static constexpr int kAhead = 3, kLoads = Rows / 32;
    const W* from;
    int offsets[kLoads];
    uint32_t to;  // the thread's first row in a stage
    int row, quarter;
    uint4 bytes[kAhead][kLoads];

    __device__ WidenedCopy(const W* all, int first_row, int64_t count, int64_t k,
                           uint32_t stage_begin)
        : from(all + first_row * k), row(threadIdx.x % kGroup / 4), quarter(threadIdx.x % 4) {
        const int rows = static_cast<int>(min(int64_t{Rows}, count - first_row));
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            int at = row + 32 * i;
            if (rows < Rows) at %= rows;
            offsets[i] = at * static_cast<int>(k) + 16 * quarter;
        }
        to = stage_begin + row * kUnit * sizeof(T);
    }
    __device__ void load(int slot, int unit, bool there) {
#pragma unroll
        for (int i = 0; i < kLoads; ++i)
            bytes[slot][i] =
                there ? __ldg(reinterpret_cast<const uint4*>(from + offsets[i] + unit * kUnit))
                      : make_uint4(0, 0, 0, 0);
    }
    __device__ void store(int slot, uint32_t stage) const {
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            const uint4 v = bytes[slot][i];
            const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                uint32_t pairs[2];
                bytes_to_pairs(words[step], pairs, W(), T());
                store_8(stage + to + i * 32 * kUnit * sizeof(T) +
                            Piece<W>(4 * quarter + step).place(row),
                        pairs);
            }
        }
    }
};

// Arrivals that a stage waits for: of each thread that copies its copies', and its own where it
// stores too.
template <class W>
inline constexpr int kArrivals = sizeof(W) == 1 ? 2 * kGroup : kGroup;

// A warpgroup: copies all units of the block's slices.
template <class T, class W, class S>
__device__ void copy_units(Stage<T, S>* stages, Barriers<S>& barriers, const SmallMArgs& args,
                           const T* x, const W* w, const Work<S>& work) {
    const int begin = args.slice_begin(work.slice), end = args.slice_begin(work.last);
    const UnitCopy<T, W, S::kRows> x_copy(x, work.row, args.rows, args.k, 0);
    const int column = threadIdx.x % 16 * 4, k = static_cast<int>(args.k);
    const auto there = [&](int unit) { return unit * kUnit + column < k; };
    Place<S::kStages> place;
    if constexpr (sizeof(W) == 1) {
        using Copy = WidenedCopy<T, W, S::kOutputs>;
        Copy w_copy(w, work.n, args.n, args.k, sizeof(stages->x));
        const auto w_there = [&](int unit) {
            return unit < end && unit * kUnit + 16 * w_copy.quarter < k;
        };
#pragma unroll
        for (int i = 0; i < Copy::kAhead; ++i) w_copy.load(i, begin + i, w_there(begin + i));
        pdl_wait();
        for (int first = begin; first < end; first += Copy::kAhead) {
#pragma unroll
            for (int i = 0; i < Copy::kAhead; ++i) {
                const int unit = first + i;
                if (unit >= end) break;
                if (unit - begin >= S::kStages) wait(barriers.empty[place.at], place.parity ^ 1);
                const uint32_t stage = shared_address(stages + place.at);
                x_copy.start(stage, unit, there(unit));
                w_copy.store(i, stage);
                arrive(barriers.full[place.at]);
                arrive_when_copied(barriers.full[place.at]);
                w_copy.load(i, unit + Copy::kAhead, w_there(unit + Copy::kAhead));
                place.advance();
            }
        }
    } else {
        const UnitCopy<T, W, S::kOutputs> w_copy(w, work.n, args.n, args.k, sizeof(stages->x));
        // The first stages are empty, and weights can be read before the previous kernels end.
        const int early = min(end - begin, S::kStages);
        for (int i = 0; i < early; ++i)
            w_copy.start(shared_address(stages + i), begin + i, there(begin + i));
        pdl_wait();
        for (int unit = begin; unit < end; ++unit, place.advance()) {
            const uint32_t stage = shared_address(stages + place.at);
            if (unit - begin >= S::kStages) {
                wait(barriers.empty[place.at], place.parity ^ 1);
                w_copy.start(stage, unit, there(unit));
            }
            x_copy.start(stage, unit, there(unit));
            arrive_when_copied(barriers.full[place.at]);
        }
    }
}

// Finishes the block's part of the tile, whose sums are in shared memory, and writes it, V
// neighbours at a time. Called by all threads of the block.
template <class T, class S, int V>
class Finish {
  public:
    __device__ Finish(const SmallMArgs& args, const Work<S>& work) : args_(args), work_(work) {
        load_residual(threadIdx.x);
    }
    __device__ void operator()(const float* sums, const EpilogueParams* columns) {
#pragma unroll 1
        for (int i = threadIdx.x; i < kCount; i += S::kThreads) {
            const Pack<T, V> residual = residual_;
            load_residual(i + S::kThreads);
            const int row = i / kPacks, own = i % kPacks * V, n = output(own);
            if (work_.row + row >= args_.rows || work_.n + n >= args_.n) continue;
            const int64_t at = place(row, n);
            const Pack<float, V> sum = load_pack<V>(sums + row * S::kPitch + own);
            Pack<T, V> y;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const float added = V == 1 ? residual_at(args_, at) : to_f32(residual.values[v]);
                const float value = apply_epilogue(args_, columns[n + v], sum.values[v], added);
                if (V == 1) {
                    store_any(args_.y, args_.y_type, at, value);
                } else {
                    y.values[v] = from_f32<T>(value);
                }
            }
            if (V > 1) *reinterpret_cast<Pack<T, V>*>(static_cast<T*>(args_.y) + at) = y;
        }
    }

  private:
    static constexpr int kPacks = S::kOwn / V, kCount = S::kRows * kPacks;

    // The output of the tile that is number `own` of this block.
    __device__ int output(int own) const { return work_.rank * S::kOwn + own; }
    __device__ int64_t place(int row, int n) const {
        return int64_t{work_.row + row} * args_.n + work_.n + n;
    }
    // Loads the residual of the i-th V values before they are finished.
    __device__ void load_residual(int i) {
        residual_ = {};
        if (V == 1 || !args_.residual || i >= kCount) return;
        const int row = i / kPacks, n = output(i % kPacks * V);
        if (work_.row + row < args_.rows && work_.n + n < args_.n)
            residual_ = load_pack<V>(static_cast<const T*>(args_.residual) + place(row, n));
    }

    const SmallMArgs& args_;
    const Work<S>& work_;
    Pack<T, V> residual_;
};

}  // namespace hark::cuda::small_m_wgmma
