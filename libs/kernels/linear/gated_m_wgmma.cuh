// Gate and up of up to 256 rows on Hopper: two warpgroups share a tile of 256 rows of x by as many
// rows of W as their registers have sums for, half of them the gate's. The L2 cache bounds such
// products: a tile reads it less the larger it is, and two blocks bring half of the rows of x each.
#pragma once

#include "kernels/cuda/hopper_products.cuh"
#include "kernels/linear/gemm_wgmma.cuh"
#include "kernels/linear/gemm_wgmma_epilogue.cuh"

namespace hark::cuda::gated_m {

using namespace hopper;
using gemm_wgmma::kDepth, gemm_wgmma::kGroup, gemm_wgmma::kMultiplying, gemm_wgmma::kPair;
using gemm_wgmma::Maps;

// A tile has kColumns rows of W: of kOutputs outputs the gate's, then up's. A warpgroup has kParts
// * 64 rows of x: kColumns registers per thread are sums.
struct Shape {
    static constexpr int kParts = 2, kRows = kMultiplying * kParts * 64;
    static constexpr int kColumns = 224, kOutputs = kColumns / 2, kSums = kColumns / 2;
    static constexpr int kStages = 3, kThreads = kMultiplying * kGroup;
};

// y (rows, n) = activation(gate) * up of x (rows, K) W^T, W (2 n, K); rows <= Shape::kRows.
struct Product {
    void* y;
    int rows, n;
    int steps;     // of kDepth columns
    bool is_gelu;  // by tanh; else SiLU
};

// Stages of x are free once both blocks have read them, those of W once this one has.
template <class T, class S>
struct Shared {
    T x[S::kStages][S::kRows][kDepth<T>];
    T w[S::kStages][S::kColumns][kDepth<T>];
    uint64_t full_x[S::kStages], full_w[S::kStages], empty_x[S::kStages], empty_w[S::kStages];

    // By all threads of the cluster.
    __device__ void make_barriers(const Maps& maps) {
        if (threadIdx.x == 0) {
            prefetch_map(maps.x);
            prefetch_map(maps.w);
            for (int i = 0; i < S::kStages; ++i) {
                init(full_x[i], 1);
                init(full_w[i], 1);
                init(empty_x[i], kPair * S::kThreads / 32);
                init(empty_w[i], S::kThreads / 32);
            }
            fence_init();
        }
        sync_cluster();
    }
    // One thread: starts the copies of a step's W for this block, of half of its rows of x for
    // both.
    __device__ void start_w(const Maps& maps, int up, int output, int at, int step) {
        arrive_expecting(full_w[at], S::kColumns * 128);
        copy_box(w[at][0], maps.w, full_w[at], step * kDepth<T>, output);
        copy_box(w[at][S::kOutputs], maps.w, full_w[at], step * kDepth<T>, up + output);
    }
    __device__ void start_x(const Maps& maps, int rank, int at, int step) {
        const int row = rank * (S::kRows / kPair);
        arrive_expecting(full_x[at], S::kRows * 128);
        copy_box_to((1 << kPair) - 1, x[at][row], maps.x, full_x[at], step * kDepth<T>, row);
    }
};

// x times a logistic function: of x for SiLU, and for GELU by tanh of twice tanh's argument.
__device__ inline float activated(float x, bool is_gelu) {
    constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;
    const float u = is_gelu ? kTwiceSqrt2OverPi * (x + 0.044715f * x * x * x) : x;
    return __fdividef(x, 1.0f + __expf(-u));
}

// Two neighbouring values of y from their sums.
template <class T>
__device__ inline uint32_t gated_pair(const float* gate, const float* up, bool is_gelu) {
    const auto value = [&](int i) {
        return activated(to_f32(from_f32<T>(gate[i])), is_gelu) * to_f32(from_f32<T>(up[i]));
    };
    return gemm_wgmma::pack<T>(value(0), value(1));
}

// Writes a warpgroup's rows of a tile, the first one `row`. Lanes with neighbouring sums exchange
// values, so that four lanes write 32 bytes of a row.
template <class T, class S>
__device__ void write_gated(const Product& args, int row, int output,
                            const float (&sums)[S::kParts][S::kSums]) {
    const int lane = threadIdx.x % 32, t = lane % 4,
              own = threadIdx.x % kGroup / 32 * 16 + lane / 4;
    const bool is_odd = t % 2;
    const int first = output + 8 * (t % 2);
    T* const to = static_cast<T*>(args.y) + int64_t{row + own} * args.n + first + t / 2 * 4;
    const int left = args.rows - row - own;
#pragma unroll
    for (int j = 0; j < S::kOutputs / 8; j += 2)
#pragma unroll
        for (int part = 0; part < S::kParts; ++part)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int r = part * 64 + half * 8;
                uint32_t words[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float* const gate = &sums[part][4 * (j + i) + 2 * half];
                    words[i] = gated_pair<T>(gate, gate + S::kSums / 2, args.is_gelu);
                }
                const uint32_t got = __shfl_xor_sync(0xffffffff, is_odd ? words[0] : words[1], 1);
                if (r < left && 8 * j < args.n - first)
                    *reinterpret_cast<uint2*>(to + int64_t{r} * args.n + 8 * j) =
                        is_odd ? uint2{got, words[1]} : uint2{words[0], got};
            }
}

// No thread only copies: the sums leave no registers for it.
template <class T, class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    gated_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Product args) {
#if HARK_HOPPER_CODE
    pdl_trigger();
    extern __shared__ unsigned char memory[];
    Shared<T, S>& shared =
        *reinterpret_cast<Shared<T, S>*>(memory + (1024 - shared_address(memory) % 1024) % 1024);
    const int rank = cluster_rank(), lane = threadIdx.x % 32;
    const int group = __shfl_sync(0xffffffff, threadIdx.x / kGroup, 0);
    const int output = static_cast<int>(blockIdx.x) * S::kOutputs;
    const bool copies = threadIdx.x == 0;
    shared.make_barriers(maps);
    if (copies)  // no kernel has written W
        for (int at = 0; at < S::kStages; ++at) shared.start_w(maps, args.n, output, at, at);
    pdl_wait();
    if (copies)
        for (int at = 0; at < S::kStages; ++at) shared.start_x(maps, rank, at, at);
    Place<S::kStages> place, before;  // of the step and the one before it
    // Each warp reports that it has read a stage, of x to both blocks; once all have, its next copy
    // begins.
    const auto refill = [&](int step) {
        if (lane < kPair) arrive_at(lane, shared.empty_x[before.at]);
        if (lane == kPair) arrive(shared.empty_w[before.at]);
        if (copies && step < args.steps) {
            wait(shared.empty_w[before.at], before.parity);
            shared.start_w(maps, args.n, output, before.at, step);
            wait(shared.empty_x[before.at], before.parity);
            shared.start_x(maps, rank, before.at, step);
        }
        before.advance();
    };
    float sums[S::kParts][S::kSums];
    for (int step = 0; step < args.steps; ++step) {
        wait(shared.full_x[place.at], place.parity);
        wait(shared.full_w[place.at], place.parity);
        const uint64_t x = factor(shared.x[place.at][group * S::kParts * 64]);
        const uint64_t w = factor(shared.w[place.at]);
        fence_products();
#pragma unroll
        for (int k = 0; k < 128 / 32; ++k)
#pragma unroll
            for (int part = 0; part < S::kParts; ++part)
                multiply(T{}, sums[part], moved(x, part * 64 * 128 + k * 32), moved(w, k * 32),
                         step > 0 || k > 0);
        commit_products();
        wait_products<1>();
        if (step > 0) refill(step - 1 + S::kStages);
        place.advance();
    }
    wait_products<0>();
#pragma unroll
    for (int part = 0; part < S::kParts; ++part) pin(sums[part]);
    write_gated<T, S>(args, group * S::kParts * 64, output, sums);
    sync_cluster();  // the other block may still send rows here and report reads
#endif
}

}  // namespace hark::cuda::gated_m
