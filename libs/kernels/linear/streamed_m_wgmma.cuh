// linear of 33 to 128 rows of e4m3 on Hopper: both operands by TMA, products by wgmma, everything
// fused. The blocks have equal shares of W, one per multiprocessor: a tile that several blocks
// share is finished by the first of them, which adds the sums of the others.
#pragma once

#include "kernels/linear/rows_tile_wgmma.cuh"

namespace hark::cuda::streamed_m {

using namespace rows_tile;

inline constexpr int kStep = 128;     // columns per stage
inline constexpr int kOutputs = 128;  // rows of W per tile

template <int Rows>
struct Tile : TileShape<Rows, kOutputs> {
    using Shape = TileShape<Rows, kOutputs>;
    static constexpr int kStages = Rows == 64 ? 7 : 4;
    static constexpr int kBytes = kStages * Shape::kStageBytes + Rows * Shape::kStride * 4 + 1024;
    static constexpr int kPart = kMultiplyingThreads * Shape::kSums;  // floats of a tile's sums
};

// y (rows, n), rows <= Tile::kRows, = residual + f(x W^T + bias); if gated, output n = f(row n of
// W) * row up + n, both rounded to y's type. n is a multiple of 8.
struct Product {
    void* y;
    const float* bias;
    const void* residual;              // as y, or null
    const float *x_scales, *w_scales;  // of their rows
    Dtype y_type;
    Activation f;
    int rows, n, up;   // up: 0 if not gated
    int steps, tiles;  // of a tile; of W
    int each, more;    // steps of each block, and one more of the first ones
    float* parts;      // (blocks, Tile::kPart): sums of tiles that a block does not finish
    uint32_t* flags;   // (blocks): whether they are there; zeros before
};

// Outputs of a tile.
__device__ inline int outputs_of(const Product& args) { return args.up ? kOutputs / 2 : kOutputs; }

// Where a block's share of all tiles' steps begins; the next one's is its end.
__device__ inline int share(const Product& args, int block) {
    return block * args.each + min(block, args.more);
}

// One thread: starts all copies of a block.
template <class S>
__device__ void copy_share(unsigned char* stages, Barriers<S>& barriers, const Maps& maps,
                           const Product& args) {
    const int begin = share(args, blockIdx.x), end = share(args, blockIdx.x + 1);
    struct Cursor {
        int tile, step, steps;
        __device__ Cursor(int at, int steps) : tile(at / steps), step(at % steps), steps(steps) {}
        __device__ void advance() {
            if (++step == steps) step = 0, ++tile;
        }
    };
    Cursor w_at(begin, args.steps), x_at = w_at;
    const auto start_w = [&](int at) {
        arrive_expecting(barriers.full[at], S::kStageBytes);
        copy_weights<S>(stages + at * S::kStageBytes, maps.w, barriers.full[at], w_at.step * kStep,
                        w_at.tile * outputs_of(args), args.up);
        w_at.advance();
    };
    const auto start_x = [&](int at) {
        copy_box(stages + at * S::kStageBytes, maps.x, barriers.full[at], x_at.step * kStep, 0);
        x_at.advance();
    };
    // The first stages are empty, and no kernel has written the weights.
    const int early = min(end - begin, S::kStages);
#pragma unroll 1
    for (int at = 0; at < early; ++at) start_w(at);
    pdl_wait();
#pragma unroll 1
    for (int at = 0; at < early; ++at) start_x(at);
    Place<S::kStages> place;
    place.advance(early);
#pragma unroll 1
    for (int at = begin + early; at < end; ++at, place.advance()) {
        wait(barriers.empty[place.at], place.parity ^ 1);
        start_w(place.at);
        start_x(place.at);
    }
}

__device__ inline float activated(float x, Activation f) {
    return f == Activation::silu ? __fdividef(x, 1.0f + __expf(-x)) : activate_any(x, f);
}

template <class Y>
__device__ inline float gated(float gate, float up, Activation f) {
    return activated(to_f32(from_f32<Y>(gate)), f) * to_f32(from_f32<Y>(up));
}

template <class Y>
__device__ inline float4 four_of(const void* from, int64_t at) {
    const Pack<Y, 4> in = load_pack<4>(static_cast<const Y*>(from) + at);
    return {to_f32(in.values[0]), to_f32(in.values[1]), to_f32(in.values[2]), to_f32(in.values[3])};
}

// What the sums of four outputs from n on become before the activation.
struct Columns4 {
    float4 scale, bias{};

    __device__ Columns4(const Product& args, int n) : scale(four(args.w_scales + n)) {
        if (args.bias) bias = four(args.bias + n);
    }
    __device__ void apply(float (&to)[4], const float* sums, float row_scale) const {
        const float4 sum = four(sums);
        to[0] = fmaf(sum.x * row_scale, scale.x, bias.x);
        to[1] = fmaf(sum.y * row_scale, scale.y, bias.y);
        to[2] = fmaf(sum.z * row_scale, scale.z, bias.z);
        to[3] = fmaf(sum.w * row_scale, scale.w, bias.w);
    }
};

// Sums go through shared memory: what follows is short code, and threads write neighbours. What is
// read of memory is requested for some rows at once.
template <class Y, class S>
__device__ void finish(float* memory, const Product& args, int output,
                       const float (&sums)[S::kSums]) {
    constexpr int kHalf = S::kColumns / 2, kRowsAtOnce = 4;
    const int across = outputs_of(args) / 4;  // threads per row
    const int c = threadIdx.x % across * 4, n = output + c, inside = min(n, args.n - 4);
    const Columns4 own(args, inside), others(args, args.up + inside);
    sync_part(1, kMultiplyingThreads);  // all have read the sums before
    store_sums<S>(memory, sums);
    sync_part(1, kMultiplyingThreads);
    if (n >= args.n) return;
    const int from_column = args.up ? c / kHalf * S::kColumns + c % kHalf : c;
    const int step = kMultiplyingThreads / across;
    const bool is_f32 = args.y_type == Dtype::f32;
#pragma unroll 1
    for (int first = threadIdx.x / across; first < args.rows; first += kRowsAtOnce * step) {
        float scales[kRowsAtOnce];
        float4 added[kRowsAtOnce];
#pragma unroll
        for (int j = 0; j < kRowsAtOnce; ++j) {
            const int r = min(first + j * step, args.rows - 1);
            const int64_t at = int64_t{r} * args.n + n;
            scales[j] = args.x_scales[r];
            added[j] = !args.residual ? float4{}
                       : is_f32       ? four_of<float>(args.residual, at)
                                      : four_of<Y>(args.residual, at);
        }
#pragma unroll
        for (int j = 0; j < kRowsAtOnce; ++j) {
            const int r = first + j * step;
            if (r >= args.rows) break;
            const float* const from = memory + r * S::kStride + from_column;
            float y[4];
            own.apply(y, from, scales[j]);
            if (args.up) {
                float up[4];
                others.apply(up, from + kHalf, scales[j]);
#pragma unroll
                for (int i = 0; i < 4; ++i) y[i] = gated<Y>(y[i], up[i], args.f);
            } else if (args.f != Activation::none) {
                for (float& value : y) value = activated(value, args.f);
            }
            y[0] += added[j].x, y[1] += added[j].y, y[2] += added[j].z, y[3] += added[j].w;
            const int64_t at = int64_t{r} * args.n + n;
            is_f32 ? store_four<float>(args.y, at, y) : store_four<Y>(args.y, at, y);
        }
    }
}

// ld.acquire and st.release: what was written before the flag was set is visible.
__device__ inline uint32_t load_flag(const uint32_t* flag) {
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}
__device__ inline void set_flag(uint32_t* flag) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1u) : "memory");
}

// Leaves a tile's sums to the block that finishes it.
template <class S>
__device__ void leave_sums(const Product& args, const float (&sums)[S::kSums]) {
    float4* const to = reinterpret_cast<float4*>(args.parts + int64_t{blockIdx.x} * S::kPart);
#pragma unroll
    for (int i = 0; i < S::kSums; i += 4)
        __stcg(to + i / 4 * kMultiplyingThreads + threadIdx.x,
               make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]));
    __threadfence();
    sync_part(1, kMultiplyingThreads);
    if (threadIdx.x == 0) set_flag(args.flags + blockIdx.x);
}

// Adds the sums of the next blocks, in their order, to those of a tile that ends at `end`. A block
// leaves its own sums before it waits, and only the first block of a tile waits, for blocks of
// larger numbers. As blocks start in the order of their numbers, which CUDA does not promise, a
// block that waits never keeps out those that it waits for.
template <class S>
__device__ void add_sums(const Product& args, int end, float (&sums)[S::kSums]) {
    int blocks = 1;
    while (share(args, blockIdx.x + blocks) < end) ++blocks;
    const int own = blockIdx.x + 1 + threadIdx.x;
    if (static_cast<int>(threadIdx.x) < blocks - 1) {
        while (load_flag(args.flags + own) == 0) continue;
    }
    sync_part(1, kMultiplyingThreads);
    // The next block's are requested before one's are added, some at a time: registers are few.
    constexpr int kFours = 8;
#pragma unroll
    for (int first = 0; first < S::kSums / 4; first += kFours) {
        float4 next[kFours];
        const auto request = [&](int b) {
            const float4* const from =
                reinterpret_cast<const float4*>(args.parts + int64_t{blockIdx.x + b} * S::kPart);
#pragma unroll
            for (int i = 0; i < kFours; ++i)
                next[i] = __ldcg(from + (first + i) * kMultiplyingThreads + threadIdx.x);
        };
        request(1);
#pragma unroll 1
        for (int b = 1; b < blocks; ++b) {
            float4 more[kFours];
#pragma unroll
            for (int i = 0; i < kFours; ++i) more[i] = next[i];
            if (b + 1 < blocks) request(b + 1);
#pragma unroll
            for (int i = 0; i < kFours; ++i) {
                float* const to = &sums[4 * (first + i)];
                to[0] += more[i].x, to[1] += more[i].y, to[2] += more[i].z, to[3] += more[i].w;
            }
        }
    }
}

template <class Y, class S>
__device__ void multiply_share(unsigned char* stages, float* memory, Barriers<S>& barriers,
                               const Product& args) {
    const Factors<S> from(threadIdx.x / kGroup);
    const auto release = [&](int stage) {
        if (threadIdx.x % 32 == 0) arrive(barriers.empty[stage]);
    };
    Place<S::kStages> place;
    int at = share(args, blockIdx.x);
    const int end = share(args, blockIdx.x + 1);
#pragma unroll 1
    while (at < end) {
        const int tile = at / args.steps, first = at - tile * args.steps;
        const int last = min(args.steps, first + end - at);
        float sums[S::kSums];
        int before = 0;
        for (int step = first; step < last; ++step) {
            wait(barriers.full[place.at], place.parity);
            const uint64_t stage = factor(stages + place.at * S::kStageBytes);
            fence_products();
#pragma unroll
            for (int k = 0; k < 128 / 32; ++k)
                multiply(fp8_t{}, sums, moved(stage, from.x + k * 32),
                         moved(stage, from.w + k * 32), step > first || k > 0);
            commit_products();
            wait_products<1>();
            if (step > first) release(before);
            before = place.at;
            place.advance();
        }
        wait_products<0>();
        pin(sums);
        release(before);
        at += last - first;
        pdl_wait();
        if (first > 0) {
            leave_sums<S>(args, sums);
            continue;
        }
        if (last < args.steps) add_sums<S>(args, (tile + 1) * args.steps, sums);
        finish<Y, S>(memory, args, tile * outputs_of(args), sums);
    }
}

// Shared memory: stages of rows of x and of W, then sums.
template <class Y, class S>
__global__ void __launch_bounds__(kThreads, 1)
    streamed_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Product args) {
#if HARK_HOPPER_CODE
    pdl_trigger();
    extern __shared__ unsigned char memory[];
    __shared__ Barriers<S> barriers;
    unsigned char* const stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    if (threadIdx.x == kMultiplyingThreads) barriers.make(maps);
    __syncthreads();
    if (threadIdx.x < kMultiplyingThreads) {
        float* const sums = reinterpret_cast<float*>(stages + S::kStages * S::kStageBytes);
        return multiply_share<Y, S>(stages, sums, barriers, args);
    }
    if (threadIdx.x == kMultiplyingThreads) copy_share<S>(stages, barriers, maps, args);
    pdl_wait();
#endif
}

}  // namespace hark::cuda::streamed_m
