// batch_kernel: linear of small batches on Hopper by wgmma, with the same bits as sliced_kernel and
// tiled_kernel (small_m_mma.cuh). Steps of 16 columns and slices are the same: each slice is summed
// from zero, and slices are added in order.
#pragma once

#include "kernels/cuda/clusters.cuh"
#include "kernels/linear/small_m_wgmma.cuh"

namespace hark::cuda::small_m_wgmma {

// A warpgroup: multiplies its part of the tile and leaves the sums that the block finishes in
// shared memory, in place of the stages.
template <class T, class S>
__device__ void multiply_units(Stage<T, S>* stages, Barriers<S>& barriers, float4* parts,
                               const SmallMArgs& args, const Work<S>& work) {
    constexpr int kMine = S::kMine;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int first_row = warp / 4 * 64;
    float totals[kMine][4] = {};
    float sums[S::kOutputs / 2];
    Place<S::kStages> place;
    int before = 0;
    const auto release = [&] {
        if (lane == 0) arrive(barriers.empty[before]);
    };
    for (int slice = work.slice; slice < work.last; ++slice) {
        const int begin = args.slice_begin(slice), end = args.slice_begin(slice + 1);
        for (int unit = begin; unit < end; ++unit) {
            wait(barriers.full[place.at], place.parity);
            fence_stores();  // the matrix units see the copies
            const uint64_t x = factor(stages[place.at].x[first_row]);
            const uint64_t w = factor(stages[place.at].w);
            fence_products();
#pragma unroll
            for (int k = 0; k < kUnit / 16; ++k)
                multiply(T{}, sums, moved(x, k * 32), moved(w, k * 32), unit > begin || k > 0);
            commit_products();
            wait_products<1>();
            if (unit > begin) release();
            before = place.at;
            place.advance();
        }
        wait_products<0>();
        pin(sums);
        release();
#pragma unroll
        for (int i = 0; i < S::kOutputs / 8; ++i) {
            const float four[4] = {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
            if constexpr (S::kSplit > 1) {
                float4* const to = parts + (slice * kMine + i % kMine) * S::kMultiplying + thread;
                send(address_in(i / kMine, to), four);
            } else {
                for (int v = 0; v < 4; ++v) totals[i][v] = __fadd_rn(totals[i][v], four[v]);
            }
        }
    }
    if constexpr (S::kSplit > 1) {
        sync_cluster();
        for (int slice = 0; slice < args.slices; ++slice)
#pragma unroll
            for (int i = 0; i < kMine; ++i) {
                const float4 part = parts[(slice * kMine + i) * S::kMultiplying + thread];
                totals[i][0] = __fadd_rn(totals[i][0], part.x);
                totals[i][1] = __fadd_rn(totals[i][1], part.y);
                totals[i][2] = __fadd_rn(totals[i][2], part.z);
                totals[i][3] = __fadd_rn(totals[i][3], part.w);
            }
    } else {
        sync_part(1, S::kMultiplying);  // all have read the stages
    }
    float* const tile = reinterpret_cast<float*>(stages);
    float* const mine = tile + (first_row + warp % 4 * 16 + lane / 4) * S::kPitch + 2 * (lane % 4);
#pragma unroll
    for (int i = 0; i < 2 * kMine; ++i)
        *reinterpret_cast<float2*>(mine + i % 2 * 8 * S::kPitch + i / 2 * 8) =
            make_float2(totals[i / 2][i % 2 * 2], totals[i / 2][i % 2 * 2 + 1]);
}

template <class T, class W, class S, int V>
__global__ void __launch_bounds__(S::kThreads, 1)
    batch_kernel(SmallMArgs args, const T* x, const W* w) {
#if HARK_HOPPER_CODE
    pdl_trigger();
    extern __shared__ unsigned char memory[];
    __shared__ Barriers<S> barriers;
    __shared__ EpilogueParams columns[S::kOutputs];
    auto* const stages =
        reinterpret_cast<Stage<T, S>*>(memory + (1024 - shared_address(memory) % 1024) % 1024);
    auto* const parts = reinterpret_cast<float4*>(stages + S::kStages);
    const Work<S> work(args);
    if (threadIdx.x == 0) {
        for (int i = 0; i < S::kStages; ++i) {
            init(barriers.full[i], kArrivals<W>);
            init(barriers.empty[i], S::kMultiplying / 32);
        }
    }
    __syncthreads();
    if (S::kSplit > 1) arrive_in_cluster();
    const bool multiplies = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) < S::kMultiplying / 32;
    if (multiplies) {
        for (int i = threadIdx.x; i < S::kOutputs; i += S::kMultiplying)
            columns[i] = epilogue_params(args, work.n + i);
    } else {
        copy_units<T, W, S>(stages, barriers, args, x, w, work);
    }
    __syncwarp();
    pdl_wait();
    Finish<T, S, V> finish(args, work);
    if (S::kSplit > 1) wait_for_cluster();  // the receiving block must be running
    if (multiplies) {
        multiply_units<T, S>(stages, barriers, parts, args, work);
    } else if (S::kSplit > 1) {
        sync_cluster();
    }
    __syncthreads();
    finish(reinterpret_cast<const float*>(stages), columns);
#endif
}

template <class T, class W, class S, int V>
void launch_small_m(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    const auto kernel = batch_kernel<T, W, S, V>;
    const size_t parts =
        S::kSplit > 1 ? sizeof(float4) * args.slices * S::kMine * S::kMultiplying : 0;
    const size_t bytes = sizeof(Stage<T, S>) * S::kStages + parts + 1024;  // 1024: to align it
    const int64_t tiles = ceil_div(args.rows, S::kRows) * ceil_div(args.n, S::kOutputs);
    ClusterLaunch(ctx, kernel, S::kSplit, S::kThreads, static_cast<int>(bytes))
        .start(tiles, args, static_cast<const T*>(x.data), static_cast<const W*>(w.data));
}

template <class T, class W, class S>
void launch_small_m(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    const uintptr_t pointers =
        reinterpret_cast<uintptr_t>(args.y) | reinterpret_cast<uintptr_t>(args.residual);
    const bool as_x = args.y_type == x.dtype;
    if (as_x && args.n % 8 == 0 && pointers % 16 == 0)
        return launch_small_m<T, W, S, 8>(ctx, args, x, w);
    if (as_x && args.n % 2 == 0 && pointers % 4 == 0)
        return launch_small_m<T, W, S, 2>(ctx, args, x, w);
    launch_small_m<T, W, S, 1>(ctx, args, x, w);
}

// The smallest tiles whose number is at most that of the multiprocessors: each reads a limited
// number of bytes per cycle. Measured on an H200 (docs/kernels/linear.md). The choice does not
// change a row's bits.
template <class T, class W>
void choose(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    const int64_t most = multiprocessors();
    const auto blocks = [&](int rows, int outputs, int split) {
        return ceil_div(args.rows, rows) * ceil_div(args.n, outputs) * split;
    };
    if (blocks(64, 64, 4) <= most) return launch_small_m<T, W, Shape<1, 64, 6, 4>>(ctx, args, x, w);
    // Long slices: more sums per byte sent.
    if (args.slices == kMostSlices && blocks(128, 128, 8) <= most * 5 / 4)
        return launch_small_m<T, W, Shape<2, 128, 3, 8>>(ctx, args, x, w);
    if (blocks(64, 64, 2) <= most) return launch_small_m<T, W, Shape<1, 64, 6, 2>>(ctx, args, x, w);
    if (blocks(64, 64, 1) <= most) return launch_small_m<T, W, Shape<1, 64, 8>>(ctx, args, x, w);
    if (blocks(64, 128, 1) <= most) return launch_small_m<T, W, Shape<1, 128, 8>>(ctx, args, x, w);
    launch_small_m<T, W, Shape<2, 128, 6>>(ctx, args, x, w);
}

// Whether the GPU runs the kernel's code.
template <class T, class W>
bool has_batch_kernel() {
    return has_hopper_code(reinterpret_cast<const void*>(batch_kernel<T, W, Shape<1, 64, 8>, 8>));
}

}  // namespace hark::cuda::small_m_wgmma
