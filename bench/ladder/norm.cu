// LayerNorm of rows of 1280: limited by memory, so each rung is about how memory is read.
#include "ladder/ladder.h"
#include "ladder/rows.cuh"

namespace hark::ladder {
namespace {

using cuda::to_f32;

constexpr int W = kNormWidth;
constexpr float kEps = 1e-5f;

// 1. A thread per row: neighbouring threads read addresses 2,560 bytes apart.
__global__ void norm_naive(NormArgs of) {
    const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= of.rows) return;
    const Bf16* x = of.x + int64_t{row} * W;
    float mean = 0, variance = 0;
    for (int i = 0; i < W; ++i) mean += to_f32(x[i]) / W;
    for (int i = 0; i < W; ++i) variance += (to_f32(x[i]) - mean) * (to_f32(x[i]) - mean) / W;
    const float by = rsqrtf(variance + kEps);
    for (int i = 0; i < W; ++i)
        of.y[int64_t{row} * W + i] =
            __float2bfloat16((to_f32(x[i]) - mean) * by * of.w[i] + of.b[i]);
}

// 2. A block per row: neighbouring threads read neighbouring values, and the row stays in shared
// memory between its passes.
__global__ void __launch_bounds__(kRowThreads) norm_tiled(NormArgs of) {
    __shared__ float x[W];
    const int64_t first = int64_t{blockIdx.x} * W;
    const auto add = [](float a, float b) { return a + b; };
    float sum = 0;
    for (int i = threadIdx.x; i < W; i += kRowThreads) sum += x[i] = to_f32(of.x[first + i]);
    const float mean = of_block(sum, add) / W;
    sum = 0;
    for (int i = threadIdx.x; i < W; i += kRowThreads) sum += (x[i] - mean) * (x[i] - mean);
    const float by = rsqrtf(of_block(sum, add) / W + kEps);
    for (int i = threadIdx.x; i < W; i += kRowThreads)
        of.y[first + i] = __float2bfloat16((x[i] - mean) * by * of.w[i] + of.b[i]);
}

// Eight neighbouring values.
using Pack = cuda::Pack<Bf16, 8>;
constexpr int kPacks = W / 8 / 32;  // of a lane

// A warp normalises a row whose values its lanes hold: pack i of a lane is number 32 i + lane.
__device__ void normalise(const NormArgs& of, int64_t row, const Pack (&packs)[kPacks]) {
    const int lane = threadIdx.x % 32;
    float x[kPacks][8], sum = 0;
#pragma unroll
    for (int i = 0; i < kPacks; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += x[i][j] = to_f32(packs[i].values[j]);
    const float mean = cuda::warp_sum(sum) / W;
    sum = 0;
#pragma unroll
    for (int i = 0; i < kPacks; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += (x[i][j] - mean) * (x[i][j] - mean);
    const float by = rsqrtf(cuda::warp_sum(sum) / W + kEps);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
        const int at = (32 * i + lane) * 8;
        const auto w = cuda::load_pack<8>(of.w + at), b = cuda::load_pack<8>(of.b + at);
        Pack out;
#pragma unroll
        for (int j = 0; j < 8; ++j)
            out.values[j] = __float2bfloat16((x[i][j] - mean) * by * w.values[j] + b.values[j]);
        *reinterpret_cast<Pack*>(of.y + row * W + at) = out;
    }
}

// 3. A warp per row in registers: accesses of 16 bytes, no shared memory, no barrier.
__global__ void __launch_bounds__(kRowThreads) norm_vectorised(NormArgs of) {
    const int64_t row = int64_t{blockIdx.x} * kRowWarps + threadIdx.x / 32;
    if (row >= of.rows) return;
    Pack packs[kPacks];
    load_row(packs, of.x + row * W);
    normalise(of, row, packs);
}

// 4. Hopper: blocks that stay, whose rows the copy engine brings three ahead.
constexpr int kRing = 4;

__global__ void __launch_bounds__(kRowThreads) norm_hopper(NormArgs of) {
    extern __shared__ __align__(128) unsigned char memory[];
    copy_rows<Bf16, W, kRing>(memory, of.x, of.rows, [&](int row, const Bf16* values) {
        Pack packs[kPacks];
        load_row(packs, values);
        normalise(of, row, packs);
    });
}

void launch_hopper(const NormArgs& of, cudaStream_t stream) {
    constexpr int kBytes = ring_bytes<Bf16, W, kRing>(), kBlocks = 2;  // per multiprocessor
    CUDA_CHECK(
        cudaFuncSetAttribute(norm_hopper, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    norm_hopper<<<kBlocks * cuda::multiprocessors(), kRowThreads, kBytes, stream>>>(of);
}

}  // namespace

std::vector<Rung> norm_rungs(const NormArgs& of) {
    const auto blocks = [of](int rows) {
        return static_cast<unsigned>((of.rows + rows - 1) / rows);
    };
    std::vector<Rung> rungs = {
        {"naive", 1, [=](cudaStream_t s) { norm_naive<<<blocks(64), 64, 0, s>>>(of); }},
        {"tiled", 5, [=](cudaStream_t s) { norm_tiled<<<blocks(1), kRowThreads, 0, s>>>(of); }},
        {"vectorised", 2,
         [=](cudaStream_t s) { norm_vectorised<<<blocks(kRowWarps), kRowThreads, 0, s>>>(of); }},
    };
    if (cuda::has_hopper_code(reinterpret_cast<const void*>(norm_hopper)))
        rungs.push_back({"hopper", 1.05, [=](cudaStream_t s) { launch_hopper(of, s); }});
    return rungs;
}

}  // namespace hark::ladder
