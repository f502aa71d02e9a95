// Softmax of rows of 1536 floats: limited by memory, as norms are.
#include <cfloat>

#include "ladder/ladder.h"
#include "ladder/rows.cuh"

namespace hark::ladder {
namespace {

constexpr int W = kSoftmaxWidth;

// 1. A thread per row, in three passes.
__global__ void softmax_naive(SoftmaxArgs of) {
    const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= of.rows) return;
    const float* x = of.x + int64_t{row} * W;
    float largest = -FLT_MAX, sum = 0;
    for (int i = 0; i < W; ++i) largest = fmaxf(largest, x[i]);
    for (int i = 0; i < W; ++i) sum += expf(x[i] - largest);
    for (int i = 0; i < W; ++i) of.y[int64_t{row} * W + i] = expf(x[i] - largest) / sum;
}

// 2. A block per row, which stays in shared memory between its passes.
__global__ void __launch_bounds__(kRowThreads) softmax_tiled(SoftmaxArgs of) {
    __shared__ float x[W];
    const int64_t first = int64_t{blockIdx.x} * W;
    float largest = -FLT_MAX, sum = 0;
    for (int i = threadIdx.x; i < W; i += kRowThreads)
        largest = fmaxf(largest, x[i] = of.x[first + i]);
    largest = of_block(largest, [](float a, float b) { return fmaxf(a, b); });
    for (int i = threadIdx.x; i < W; i += kRowThreads) sum += x[i] = __expf(x[i] - largest);
    const float by = 1 / of_block(sum, [](float a, float b) { return a + b; });
    for (int i = threadIdx.x; i < W; i += kRowThreads) of.y[first + i] = x[i] * by;
}

// Four neighbouring values.
using Pack = cuda::Pack<float, 4>;
constexpr int kPacks = W / 4 / 32;  // of a lane

// The softmax of a row whose values a warp's lanes hold: pack i of a lane is number 32 i + lane.
__device__ void softmax_row(const SoftmaxArgs& of, int64_t row, Pack (&packs)[kPacks]) {
    float largest = -FLT_MAX, sum = 0;
#pragma unroll
    for (const Pack& pack : packs)
#pragma unroll
        for (float value : pack.values) largest = fmaxf(largest, value);
    largest = cuda::warp_max(largest);
#pragma unroll
    for (Pack& pack : packs)
#pragma unroll
        for (float& value : pack.values) sum += value = __expf(value - largest);
    const float by = 1 / cuda::warp_sum(sum);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
#pragma unroll
        for (float& value : packs[i].values) value *= by;
        *reinterpret_cast<Pack*>(of.y + row * W + (32 * i + threadIdx.x % 32) * 4) = packs[i];
    }
}

// 3. A warp per row in registers: accesses of 16 bytes, no shared memory, no barrier.
__global__ void __launch_bounds__(kRowThreads) softmax_vectorised(SoftmaxArgs of) {
    const int64_t row = int64_t{blockIdx.x} * kRowWarps + threadIdx.x / 32;
    if (row >= of.rows) return;
    Pack packs[kPacks];
    load_row(packs, of.x + row * W);
    softmax_row(of, row, packs);
}

// 4. Hopper: blocks that stay, whose rows the copy engine brings two ahead.
constexpr int kRing = 3;

__global__ void __launch_bounds__(kRowThreads) softmax_hopper(SoftmaxArgs of) {
    extern __shared__ __align__(128) unsigned char memory[];
    copy_rows<float, W, kRing>(memory, of.x, of.rows, [&](int row, const float* values) {
        Pack packs[kPacks];
        load_row(packs, values);
        softmax_row(of, row, packs);
    });
}

void launch_hopper(const SoftmaxArgs& of, cudaStream_t stream) {
    constexpr int kBytes = ring_bytes<float, W, kRing>();
    CUDA_CHECK(
        cudaFuncSetAttribute(softmax_hopper, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    softmax_hopper<<<cuda::multiprocessors(), kRowThreads, kBytes, stream>>>(of);
}

}  // namespace

std::vector<Rung> softmax_rungs(const SoftmaxArgs& of) {
    const auto blocks = [of](int rows) {
        return static_cast<unsigned>((of.rows + rows - 1) / rows);
    };
    std::vector<Rung> rungs = {
        {"naive", 1, [=](cudaStream_t s) { softmax_naive<<<blocks(64), 64, 0, s>>>(of); }},
        {"tiled", 8, [=](cudaStream_t s) { softmax_tiled<<<blocks(1), kRowThreads, 0, s>>>(of); }},
        {"vectorised", 1.5,
         [=](cudaStream_t s) { softmax_vectorised<<<blocks(kRowWarps), kRowThreads, 0, s>>>(of); }},
    };
    if (cuda::has_hopper_code(reinterpret_cast<const void*>(softmax_hopper)))
        rungs.push_back({"hopper", 1.05, [=](cudaStream_t s) { launch_hopper(of, s); }});
    return rungs;
}

}  // namespace hark::ladder
