// The product of two matrices, from one thread per output to Hopper's copy engine and warpgroups.
#include <algorithm>

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/mma.cuh"
#include "ladder/fragments.cuh"
#include "ladder/ladder.h"

namespace hark::ladder {
namespace {

using cuda::to_f32;

constexpr int kTile = 128;  // rows and columns of y per block, from the third rung on

// 1. A thread computes an output: it reads a row of x and a row of w from global memory.
__global__ void product_naive(ProductArgs of) {
    const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    float sum = 0;
    for (int i = 0; i < of.k; ++i)
        sum += to_f32(of.x[row * of.k + i]) * to_f32(of.w[column * of.k + i]);
    of.y[row * of.n + column] = __float2bfloat16(sum);
}

// 2. A block copies tiles of x and w to shared memory, where each value is read 32 times.
constexpr int kSide = 32;

__global__ void product_tiled(ProductArgs of) {
    __shared__ float x[kSide][kSide], w[kSide][kSide + 1];  // a column of w hits all 32 banks
    const int i = threadIdx.x, j = threadIdx.y;
    const int column = static_cast<int>(blockIdx.x) * kSide,
              row = static_cast<int>(blockIdx.y) * kSide;
    float sum = 0;
    for (int begin = 0; begin < of.k; begin += kSide) {
        x[j][i] = to_f32(of.x[(row + j) * of.k + begin + i]);
        w[j][i] = to_f32(of.w[(column + j) * of.k + begin + i]);
        __syncthreads();
        for (int d = 0; d < kSide; ++d) sum += x[j][d] * w[i][d];
        __syncthreads();
    }
    of.y[(row + j) * of.n + column + i] = __float2bfloat16(sum);
}

// 3. A thread computes 8 x 8 outputs in registers: 16 values read from shared memory, in accesses
// of 16 bytes, are used in 64 products. Global memory is read in accesses of 16 bytes too.
constexpr int kDepth3 = 16;

// Copies kDepth3 columns of 128 rows, transposed.
__device__ void copy_across(float (&to)[kDepth3][kTile + 4], const Bf16* from, int k) {
    const int row = threadIdx.x / 2, part = threadIdx.x % 2 * 8;
    const auto values = cuda::load_pack<8>(from + row * k + part);
    for (int i = 0; i < 8; ++i) to[part + i][row] = to_f32(values.values[i]);
}

__global__ void __launch_bounds__(256) product_vectorised(ProductArgs of) {
    __shared__ __align__(16) float x[kDepth3][kTile + 4], w[kDepth3][kTile + 4];
    const int row = static_cast<int>(blockIdx.y) * kTile,
              column = static_cast<int>(blockIdx.x) * kTile;
    const int own_row = threadIdx.x / 16 * 8, own_column = threadIdx.x % 16 * 8;
    float sums[8][8] = {};
    for (int begin = 0; begin < of.k; begin += kDepth3) {
        copy_across(x, of.x + row * of.k + begin, of.k);
        copy_across(w, of.w + column * of.k + begin, of.k);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < kDepth3; ++d) {
            const auto a = cuda::load_pack<8>(&x[d][own_row]),
                       b = cuda::load_pack<8>(&w[d][own_column]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sums[i][j] += a.values[i] * b.values[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i) {
        cuda::Pack<Bf16, 8> out;
        for (int j = 0; j < 8; ++j) out.values[j] = __float2bfloat16(sums[i][j]);
        *reinterpret_cast<cuda::Pack<Bf16, 8>*>(
            &of.y[(row + own_row + i) * of.n + column + own_column]) = out;
    }
}

// Sums of 16 rows and 8 columns as mma's and wgmma's fragments have them.
__device__ void store_fragment(const ProductArgs& of, int row, int column, const float* sums) {
    const int lane = threadIdx.x % 32;
    Bf16* to = of.y + (row + lane / 4) * of.n + column + lane % 4 * 2;
    *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(sums[0], sums[1]);
    *reinterpret_cast<__nv_bfloat162*>(to + 8 * of.n) = __floats2bfloat162_rn(sums[2], sums[3]);
}

// 4. Tensor cores: a warp computes 64 x 32 outputs by mma. Two buffers: cp.async fills one while
// the other is multiplied.
constexpr int kDepth4 = 32, kThreads4 = 256;
using Tile4 = cuda::MmaTile<Bf16, kDepth4, kTile>;

__device__ void multiply_tiles(float (&sums)[4][4][4], const Tile4& x, const Tile4& w, int row,
                               int column) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 0; d < kDepth4; d += 16) {
        uint32_t a[4][4], b[2][4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            cuda::load_matrices<false>(a[i],
                                       &x.values[row + 16 * i + lane % 16][d + lane / 16 * 8]);
#pragma unroll
        for (int j = 0; j < 2; ++j)
            cuda::load_matrices<false>(
                b[j], &w.values[column + 16 * j + lane / 16 * 8 + lane % 8][d + lane / 8 % 2 * 8]);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                cuda::mma(Bf16{}, sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

__global__ void __launch_bounds__(kThreads4) product_mma(ProductArgs of) {
    __shared__ __align__(16) Tile4 x[2], w[2];
    const int row = static_cast<int>(blockIdx.y) * kTile,
              column = static_cast<int>(blockIdx.x) * kTile;
    const int warp = threadIdx.x / 32, own_row = warp / 4 * 64, own_column = warp % 4 * 32;
    const auto start = [&](int step) {
        const int begin = step * kDepth4;
        cuda::start_copy<kThreads4>(x[step % 2], of.x + row * of.k + begin, of.k, 0, kTile,
                                    kDepth4);
        cuda::start_copy<kThreads4>(w[step % 2], of.w + column * of.k + begin, of.k, 0, kTile,
                                    kDepth4);
        __pipeline_commit();
    };
    float sums[4][4][4] = {};
    const int steps = of.k / kDepth4;
    start(0);
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) start(step + 1);
        __pipeline_wait_prior(step + 1 < steps ? 1 : 0);
        __syncthreads();
        multiply_tiles(sums, x[step % 2], w[step % 2], own_row, own_column);
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            store_fragment(of, row + own_row + 16 * i, column + own_column + 8 * j, sums[i][j]);
}

// 5. Hopper: one thread starts the copy engine, four buffers ahead; two warpgroups multiply 64 rows
// each straight from shared memory.
constexpr int kDepth5 = 64, kStages5 = 4, kGroups5 = 2, kGroup = 128;

struct Shared5 {
    Bf16 x[kStages5][kTile * kDepth5], w[kStages5][kTile * kDepth5];
    uint64_t full[kStages5], empty[kStages5];
};

__global__ void __launch_bounds__((1 + kGroups5) * kGroup, 1)
    product_wgmma(const __grid_constant__ CUtensorMap x_map,
                  const __grid_constant__ CUtensorMap w_map, ProductArgs of) {
#if HARK_HOPPER_CODE
    using namespace cuda::hopper;
    extern __shared__ unsigned char memory[];
    Shared5& shared = aligned<Shared5>(memory);
    if (threadIdx.x == 0) {
        for (int i = 0; i < kStages5; ++i) {
            init(shared.full[i], 1);
            init(shared.empty[i], kGroups5 * kGroup / 32);
        }
        fence_init();
    }
    __syncthreads();
    const int row = static_cast<int>(blockIdx.y) * kTile,
              column = static_cast<int>(blockIdx.x) * kTile;
    const int steps = of.k / kDepth5, group = threadIdx.x / kGroup;
    Place<kStages5> place;
    if (group == 0) {
        if (threadIdx.x != 0) return;
        for (int step = 0; step < steps; ++step, place.advance()) {
            wait(shared.empty[place.at], place.parity ^ 1);
            arrive_expecting(shared.full[place.at], 2 * sizeof shared.x[0]);
            copy_box(shared.x[place.at], x_map, shared.full[place.at], step * kDepth5, row);
            copy_box(shared.w[place.at], w_map, shared.full[place.at], step * kDepth5, column);
        }
        return;
    }
    const int own_row = (group - 1) * 64, warp = threadIdx.x % kGroup / 32;
    float sums[kTile / 2];
    for (int step = 0; step < steps; ++step, place.advance()) {
        wait(shared.full[place.at], place.parity);
        const uint64_t x = factor(shared.x[place.at] + own_row * kDepth5);
        const uint64_t w = factor(shared.w[place.at]);
        fence_products();
#pragma unroll
        for (int k = 0; k < kDepth5 / 16; ++k)
            multiply(Bf16{}, sums, moved(x, k * 32), moved(w, k * 32), step > 0 || k > 0);
        commit_products();
        wait_products<0>();
        pin(sums);
        if (threadIdx.x % 32 == 0) arrive(shared.empty[place.at]);
    }
    for (int j = 0; j < kTile / 8; ++j)
        store_fragment(of, row + own_row + warp * 16, column + 8 * j, sums + 4 * j);
#endif
}

void launch_wgmma(const ProductArgs& of, cudaStream_t stream) {
    const auto map = [&](const Bf16* data, int rows) {
        const auto k = static_cast<uint64_t>(of.k);
        return cuda::tile_map(Dtype::bf16, data, {k, static_cast<uint64_t>(rows)},
                              {k * sizeof(Bf16)}, {kDepth5, kTile});
    };
    constexpr int kBytes = sizeof(Shared5) + kAlignment;
    CUDA_CHECK(
        cudaFuncSetAttribute(product_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    product_wgmma<<<dim3(of.n / kTile, of.m / kTile), (1 + kGroups5) * kGroup, kBytes, stream>>>(
        map(of.x, of.m), map(of.w, of.n), of);
}

}  // namespace

std::vector<Rung> product_rungs(const ProductArgs& of) {
    const auto tiles = [of](int side) { return dim3(of.n / side, of.m / side); };
    std::vector<Rung> rungs = {
        {"naive", 1, [=](cudaStream_t s) { product_naive<<<tiles(16), dim3(16, 16), 0, s>>>(of); }},
        {"tiled", 5,
         [=](cudaStream_t s) { product_tiled<<<tiles(kSide), dim3(kSide, kSide), 0, s>>>(of); }},
        {"vectorised", 5,
         [=](cudaStream_t s) { product_vectorised<<<tiles(kTile), 256, 0, s>>>(of); }},
        {"tensor cores", 10,
         [=](cudaStream_t s) { product_mma<<<tiles(kTile), kThreads4, 0, s>>>(of); }},
    };
    if (cuda::has_hopper_code(reinterpret_cast<const void*>(product_wgmma)))
        rungs.push_back({"hopper", 1.6, [=](cudaStream_t s) { launch_wgmma(of, s); }});
    return rungs;
}

}  // namespace hark::ladder
