// linear of 33 to 128 rows of 16 bits by many outputs on Hopper: both operands by TMA, products by
// wgmma, everything fused. A block requests its first weights before the previous kernels end.
#pragma once

#include "kernels/linear/rows_tile_wgmma.cuh"

namespace hark::cuda::medium_m {

using namespace rows_tile;

inline constexpr int kStep = 64;  // columns per stage

// Of 128 outputs two blocks fit a multiprocessor, of 224 one.
template <int Rows, int Outputs>
struct Tile : TileShape<Rows, Outputs> {
    using Shape = TileShape<Rows, Outputs>;
    static constexpr int kBlocks = Outputs == 128 ? 2 : 1;
    static constexpr int kStages = (Rows == 64 ? 4 : 3) + (kBlocks == 1 ? 2 : 0);
    static constexpr int kBytes = kStages * Shape::kStageBytes + 1024;  // 1024: to align it
    static_assert(Rows * Shape::kStride * 4 <= kStages * Shape::kStageBytes);

    // Outputs of y per tile.
    __host__ __device__ static int outputs(bool gated) { return gated ? Outputs / 2 : Outputs; }
};

// y (rows, n), rows <= Tile::kRows, = f(x W^T + bias); if gated, output n = f(row n of W) * row up
// + n, both rounded to y's type. n is a multiple of 8.
struct Product {
    void* y;
    const float* bias;
    Dtype y_type;
    Activation f;
    int rows, n, up;  // up: 0 if not gated
    int steps;
};

// One thread: starts all copies of a block, whose tile begins at `output`.
template <class S>
__device__ void copy_tile(unsigned char* stages, Barriers<S>& barriers, const Maps& maps,
                          const Product& args, int output) {
    const auto start_w = [&](int at, int step) {
        arrive_expecting(barriers.full[at], S::kStageBytes);
        copy_weights<S>(stages + at * S::kStageBytes, maps.w, barriers.full[at], step * kStep,
                        output, args.up);
    };
    const auto start_x = [&](int at, int step) {
        copy_box(stages + at * S::kStageBytes, maps.x, barriers.full[at], step * kStep, 0);
    };
    // The first stages are empty, and no kernel has written the weights.
    const int early = min(args.steps, S::kStages);
    for (int step = 0; step < early; ++step) start_w(step, step);
    pdl_wait();
    for (int step = 0; step < early; ++step) start_x(step, step);
    hopper::Place<S::kStages> place;
    place.advance(early);
    for (int step = early; step < args.steps; ++step, place.advance()) {
        wait(barriers.empty[place.at], place.parity ^ 1);
        start_w(place.at, step);
        start_x(place.at, step);
    }
}

__device__ inline float activated(float x, Activation f) {
    return f == Activation::silu ? activate(x, f) : activate_any(x, f);
}

template <class T>
__device__ inline float gated(float gate, float up, Activation f) {
    return activated(to_f32(from_f32<T>(gate)), f) * to_f32(from_f32<T>(up));
}

// Sums go through shared memory, which the stages leave: what follows is short code, and threads
// write neighbours. Longer code misses the instruction caches: each block runs it once.
template <class T, class S>
__device__ void finish(float* memory, const Product& args, int output,
                       const float (&sums)[S::kSums]) {
    sync_part(1, kMultiplyingThreads);  // all have read their last stages
    store_sums<S>(memory, sums);
    sync_part(1, kMultiplyingThreads);
    const int across = S::outputs(args.up) / 4, at_once = kMultiplyingThreads / across;
    const int c = threadIdx.x % across * 4, n = output + c;  // across: threads per row
    if (n >= args.n || static_cast<int>(threadIdx.x) >= at_once * across) return;
    constexpr int kHalf = S::kColumns / 2;
    const int from_column = args.up ? c / kHalf * S::kColumns + c % kHalf : c;
    const float4 bias = args.bias ? four(args.bias + n) : float4{};
    const float4 up_bias = args.up && args.bias ? four(args.bias + args.up + n) : float4{};
#pragma unroll 2
    for (int r = threadIdx.x / across; r < args.rows; r += at_once) {
        const float* const from = memory + r * S::kStride + from_column;
        const float4 sum = four(from);
        float y[4] = {sum.x + bias.x, sum.y + bias.y, sum.z + bias.z, sum.w + bias.w};
        if (args.up) {
            const float4 up = four(from + kHalf);
            y[0] = gated<T>(y[0], up.x + up_bias.x, args.f);
            y[1] = gated<T>(y[1], up.y + up_bias.y, args.f);
            y[2] = gated<T>(y[2], up.z + up_bias.z, args.f);
            y[3] = gated<T>(y[3], up.w + up_bias.w, args.f);
        } else if (args.f != Activation::none) {
            for (float& value : y) value = activated(value, args.f);
        }
        const int64_t at = int64_t{r} * args.n + n;
        args.y_type == Dtype::f32 ? store_four<float>(args.y, at, y) : store_four<T>(args.y, at, y);
    }
}

template <class T, class S>
__device__ void multiply_tile(unsigned char* stages, Barriers<S>& barriers, const Product& args,
                              int output) {
    const Factors<S> from(threadIdx.x / kGroup);
    float sums[S::kSums];
    hopper::Place<S::kStages> place;
    int before = 0;
    for (int step = 0; step < args.steps; ++step) {
        wait(barriers.full[place.at], place.parity);
        const uint64_t stage = factor(stages + place.at * S::kStageBytes);
        fence_products();
#pragma unroll
        for (int k = 0; k < kStep / 16; ++k)
            multiply(T{}, sums, moved(stage, from.x + k * 32), moved(stage, from.w + k * 32),
                     step > 0 || k > 0);
        commit_products();
        wait_products<1>();
        if (step > 0 && threadIdx.x % 32 == 0) arrive(barriers.empty[before]);
        before = place.at;
        place.advance();
    }
    wait_products<0>();
    pin(sums);
    pdl_wait();
    finish<T, S>(reinterpret_cast<float*>(stages), args, output, sums);
}

// Shared memory: stages of rows of x and of W.
template <class T, class S>
__global__ void __launch_bounds__(kThreads, S::kBlocks)
    medium_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Product args) {
#if HARK_HOPPER_CODE
    pdl_trigger();
    extern __shared__ unsigned char memory[];
    __shared__ Barriers<S> barriers;
    unsigned char* const stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    const int output = static_cast<int>(blockIdx.x) * S::outputs(args.up);
    const bool copies = threadIdx.x >= kMultiplyingThreads;
    if (threadIdx.x == kMultiplyingThreads) barriers.make(maps);
    __syncthreads();
    if (!copies) return multiply_tile<T, S>(stages, barriers, args, output);
    if (threadIdx.x == kMultiplyingThreads) copy_tile<S>(stages, barriers, maps, args, output);
    pdl_wait();
#endif
}

}  // namespace hark::cuda::medium_m
