// Attention without a mask, from scores in global memory to Hopper's copy engine and warpgroups.
#include <cfloat>

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/mma.cuh"
#include "ladder/fragments.cuh"
#include "ladder/ladder.h"

namespace hark::ladder {
namespace {

using cuda::to_f32;

constexpr int D = kHeadSize;

// 1. Three kernels, a thread per value, scores in global memory.
__global__ void scores_naive(AttentionArgs of) {
    const int64_t key = blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t query = blockIdx.y, head = blockIdx.z;
    const Bf16* q = of.q + (head * of.t + query) * D;
    const Bf16* k = of.k + (head * of.t + key) * D;
    float sum = 0;
    for (int d = 0; d < D; ++d) sum += to_f32(q[d]) * to_f32(k[d]);
    of.scores[(head * of.t + query) * of.t + key] = sum * kScale;
}

__global__ void weights_naive(AttentionArgs of) {
    const int64_t row = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    float* scores = of.scores + row * of.t;
    float largest = -FLT_MAX, sum = 0;
    for (int i = 0; i < of.t; ++i) largest = fmaxf(largest, scores[i]);
    for (int i = 0; i < of.t; ++i) sum += expf(scores[i] - largest);
    for (int i = 0; i < of.t; ++i) scores[i] = expf(scores[i] - largest) / sum;
}

__global__ void values_naive(AttentionArgs of) {
    const int64_t row = blockIdx.x, head = row / of.t;
    const float* weights = of.scores + row * of.t;
    const Bf16* v = of.v + head * of.t * D + threadIdx.x;
    float sum = 0;
    for (int i = 0; i < of.t; ++i) sum += weights[i] * to_f32(v[i * D]);
    of.out[row * D + threadIdx.x] = __float2bfloat16(sum);
}

void launch_naive(const AttentionArgs& of, cudaStream_t stream) {
    const auto t = static_cast<unsigned>(of.t), heads = static_cast<unsigned>(of.heads);
    scores_naive<<<dim3(t / 128, t, heads), 128, 0, stream>>>(of);
    weights_naive<<<heads * t / 128, 128, 0, stream>>>(of);
    values_naive<<<heads * t, D, 0, stream>>>(of);
}

// 2. One kernel, a thread per query: keys and values pass through shared memory, and the softmax is
// online. Each larger score rescales what has been summed.
constexpr int kKeys2 = 32, kQueries2 = 128;

__device__ void copy_as_floats(float (&to)[kKeys2][D], const Bf16* from) {
    for (int i = threadIdx.x * 8; i < kKeys2 * D; i += kQueries2 * 8) {
        const auto values = cuda::load_pack<8>(from + i);
        for (int j = 0; j < 8; ++j) to[i / D][i % D + j] = to_f32(values.values[j]);
    }
}

// A query of the thread, its weighted sum of values so far, and their weights' sum.
struct Query {
    float q[D], sums[D] = {}, largest = -FLT_MAX, weights = 0;

    __device__ Query(const Bf16* from) {
#pragma unroll
        for (int d = 0; d < D; ++d) q[d] = to_f32(from[d]) * kScale * kLog2e;
    }
    __device__ void rescale(float to) {
        const float factor = exp2f(largest - to);
        largest = to;
        weights *= factor;
#pragma unroll
        for (int d = 0; d < D; ++d) sums[d] *= factor;
    }
    __device__ void write(Bf16* to) const {
        for (int d = 0; d < D; ++d) to[d] = __float2bfloat16(sums[d] / weights);
    }
};

template <class Keys>
__device__ void for_each_tile(const AttentionArgs& of, const Keys& take) {
    __shared__ __align__(16) float k[kKeys2][D], v[kKeys2][D];
    const int64_t head = blockIdx.y * int64_t{of.t} * D;
    const int64_t own = head + (blockIdx.x * kQueries2 + threadIdx.x) * D;
    Query query(of.q + own);
    for (int key = 0; key < of.t; key += kKeys2) {
        __syncthreads();
        copy_as_floats(k, of.k + head + key * D);
        copy_as_floats(v, of.v + head + key * D);
        __syncthreads();
        take(query, k, v);
    }
    query.write(of.out + own);
}

__global__ void __launch_bounds__(kQueries2) attention_tiled(AttentionArgs of) {
    for_each_tile(of, [](Query& query, const auto& k, const auto& v) {
        for (int key = 0; key < kKeys2; ++key) {
            float score = 0;
#pragma unroll
            for (int d = 0; d < D; ++d) score += query.q[d] * k[key][d];
            query.rescale(fmaxf(query.largest, score));
            const float weight = exp2f(score - query.largest);
            query.weights += weight;
#pragma unroll
            for (int d = 0; d < D; ++d) query.sums[d] += weight * v[key][d];
        }
    });
}

// 3. Eight keys at a time: one rescaling for all, and shared memory in accesses of 16 bytes.
constexpr int kKeys3 = 8;

__global__ void __launch_bounds__(kQueries2) attention_vectorised(AttentionArgs of) {
    for_each_tile(of, [](Query& query, const auto& k, const auto& v) {
        for (int first = 0; first < kKeys2; first += kKeys3) {
            float scores[kKeys3] = {}, largest = query.largest;
#pragma unroll
            for (int d = 0; d < D; d += 4)
#pragma unroll
                for (int i = 0; i < kKeys3; ++i) {
                    const auto four = cuda::load_pack<4>(&k[first + i][d]);
#pragma unroll
                    for (int j = 0; j < 4; ++j) scores[i] += query.q[d + j] * four.values[j];
                }
#pragma unroll
            for (float score : scores) largest = fmaxf(largest, score);
            query.rescale(largest);
#pragma unroll
            for (int i = 0; i < kKeys3; ++i) {
                scores[i] = exp2f(scores[i] - largest);
                query.weights += scores[i];
            }
#pragma unroll
            for (int d = 0; d < D; d += 4)
#pragma unroll
                for (int i = 0; i < kKeys3; ++i) {
                    const auto four = cuda::load_pack<4>(&v[first + i][d]);
#pragma unroll
                    for (int j = 0; j < 4; ++j) query.sums[d + j] += scores[i] * four.values[j];
                }
        }
    });
}

// Eight channels of a warp's 16 queries.
__device__ void store_fragment(Bf16* rows, int channel, const float* sums, const TwoRows& softmax) {
    const int lane = threadIdx.x % 32;
    Bf16* to = rows + lane / 4 * D + channel + lane % 4 * 2;
    for (int row = 0; row < 2; ++row) {
        const float by = 1 / softmax.weights[row];
        *reinterpret_cast<uint32_t*>(to + row * 8 * D) =
            pair(sums[2 * row] * by, sums[2 * row + 1] * by);
    }
}

// 4. Tensor cores: a warp has 16 queries. The scores of 64 keys stay in registers, where they are
// already as the second product wants its left factor.
constexpr int kKeys4 = 64, kWarps4 = 4, kThreads4 = 32 * kWarps4;
using Tile4 = cuda::MmaTile<Bf16, D, kKeys4>;

__device__ void multiply_keys(float (&scores)[kKeys4 / 2], const uint32_t (&q)[D / 16][4],
                              const Tile4& k) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (float& score : scores) score = 0;
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
#pragma unroll
        for (int key = 0; key < kKeys4; key += 16) {
            uint32_t b[4];
            cuda::load_matrices<false>(
                b, &k.values[key + lane / 16 * 8 + lane % 8][16 * d + lane / 8 % 2 * 8]);
            auto* to = reinterpret_cast<float(*)[4]>(&scores[key / 2]);
            cuda::mma(Bf16{}, to[0], q[d], b[0], b[1]);
            cuda::mma(Bf16{}, to[1], q[d], b[2], b[3]);
        }
}

__device__ void multiply_values(float (&sums)[D / 8][4], const float (&p)[kKeys4 / 2],
                                const Tile4& v) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int key = 0; key < kKeys4; key += 16) {
        const float* at = &p[key / 2];
        const uint32_t a[4] = {pair(at[0], at[1]), pair(at[2], at[3]), pair(at[4], at[5]),
                               pair(at[6], at[7])};
#pragma unroll
        for (int channel = 0; channel < D; channel += 16) {
            uint32_t b[4];
            cuda::load_matrices<true>(b, &v.values[key + lane % 16][channel + lane / 16 * 8]);
            cuda::mma(Bf16{}, sums[channel / 8], a, b[0], b[1]);
            cuda::mma(Bf16{}, sums[channel / 8 + 1], a, b[2], b[3]);
        }
    }
}

__global__ void __launch_bounds__(kThreads4) attention_mma(AttentionArgs of) {
    __shared__ __align__(16) Tile4 k[2], v[2];
    const int64_t head = blockIdx.y * int64_t{of.t} * D;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t own = head + (blockIdx.x * kWarps4 + warp) * 16 * D;
    uint32_t q[D / 16][4];  // straight from global memory, once
    for (int d = 0; d < D / 16; ++d)
        for (int i = 0; i < 4; ++i)
            q[d][i] = *reinterpret_cast<const uint32_t*>(of.q + own + (lane / 4 + i % 2 * 8) * D +
                                                         16 * d + i / 2 * 8 + lane % 4 * 2);
    const auto start = [&](int tile) {
        const int64_t at = head + int64_t{tile} * kKeys4 * D;
        cuda::start_copy<kThreads4>(k[tile % 2], of.k + at, D, 0, kKeys4, D);
        cuda::start_copy<kThreads4>(v[tile % 2], of.v + at, D, 0, kKeys4, D);
        __pipeline_commit();
    };
    float sums[D / 8][4] = {};
    TwoRows softmax;
    const int tiles = of.t / kKeys4;
    start(0);
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) start(tile + 1);
        __pipeline_wait_prior(tile + 1 < tiles ? 1 : 0);
        __syncthreads();
        float scores[kKeys4 / 2], factors[2];
        multiply_keys(scores, q, k[tile % 2]);
        softmax.weigh(scores, factors);
#pragma unroll
        for (auto& four : sums)
#pragma unroll
            for (int i = 0; i < 4; ++i) four[i] *= factors[i / 2];
        multiply_values(sums, scores, v[tile % 2]);
        __syncthreads();
    }
    softmax.join();
    for (int i = 0; i < D / 8; ++i) store_fragment(of.out + own, 8 * i, sums[i], softmax);
}

// 5. Hopper: the copy engine brings 128 keys and their values, two tiles ahead; two warpgroups have
// 64 queries each. While one computes its softmax the other's products run.
constexpr int kTile5 = 128, kStages5 = 2, kGroups5 = 2, kGroup = 128;

struct Shared5 {
    Bf16 q[kGroups5 * 64 * D], k[kStages5][kTile5 * D], v[kStages5][kTile5 * D];
    uint64_t queries, full[kStages5], empty[kStages5];
};

struct Maps5 {
    CUtensorMap q, k, v;
};

#if HARK_HOPPER_CODE
// All tiles of keys for the warpgroup's 64 queries.
__device__ void attend(Shared5& shared, float (&sums)[D / 2], TwoRows& softmax, int tiles,
                       int group) {
    using namespace cuda::hopper;
    const uint64_t q = factor(shared.q + group * 64 * D);
    Place<kStages5> place;
    for (int tile = 0; tile < tiles; ++tile, place.advance()) {
        wait(shared.full[place.at], place.parity);
        const uint64_t k = factor(shared.k[place.at]), v = factor(shared.v[place.at]);
        float scores[kTile5 / 2], factors[2];
        fence_products();
#pragma unroll
        for (int d = 0; d < D / 16; ++d)
            multiply(Bf16{}, scores, moved(q, d * 32), moved(k, d * 32), d > 0);
        commit_products();
        wait_products<0>();
        pin(scores);
        softmax.weigh(scores, factors);
#pragma unroll
        for (int i = 0; i < D / 2; ++i) sums[i] *= factors[i / 2 % 2];
        uint32_t p[kTile5 / 16][4];
#pragma unroll
        for (int i = 0; i < kTile5 / 16; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                p[i][j] = pair(scores[8 * i + 2 * j], scores[8 * i + 2 * j + 1]);
        pin(sums);
        fence_products();
#pragma unroll
        for (int i = 0; i < kTile5 / 16; ++i)
            multiply(Bf16{}, sums, p[i], moved(v, i * 16 * D * sizeof(Bf16)));
        commit_products();
        wait_products<0>();
        pin(sums);
        if (threadIdx.x % 32 == 0) arrive(shared.empty[place.at]);
    }
}
#endif

__global__ void __launch_bounds__((1 + kGroups5) * kGroup, 1)
    attention_wgmma(const __grid_constant__ Maps5 maps, AttentionArgs of) {
#if HARK_HOPPER_CODE
    using namespace cuda::hopper;
    extern __shared__ unsigned char memory[];
    Shared5& shared = aligned<Shared5>(memory);
    if (threadIdx.x == 0) {
        init(shared.queries, 1);
        for (int i = 0; i < kStages5; ++i) {
            init(shared.full[i], 1);
            init(shared.empty[i], kGroups5 * kGroup / 32);
        }
        fence_init();
    }
    __syncthreads();
    const int head = static_cast<int>(blockIdx.y) * of.t, tiles = of.t / kTile5;
    const int query = head + static_cast<int>(blockIdx.x) * kGroups5 * 64;
    if (threadIdx.x < kGroup) {
        if (threadIdx.x != 0) return;
        arrive_expecting(shared.queries, sizeof shared.q);
        copy_box(shared.q, maps.q, shared.queries, 0, query);
        Place<kStages5> place;
        for (int tile = 0; tile < tiles; ++tile, place.advance()) {
            wait(shared.empty[place.at], place.parity ^ 1);
            arrive_expecting(shared.full[place.at], 2 * sizeof shared.k[0]);
            copy_box(shared.k[place.at], maps.k, shared.full[place.at], 0, head + tile * kTile5);
            copy_box(shared.v[place.at], maps.v, shared.full[place.at], 0, head + tile * kTile5);
        }
        return;
    }
    const int group = threadIdx.x / kGroup - 1, warp = threadIdx.x % kGroup / 32;
    float sums[D / 2] = {};
    TwoRows softmax;
    wait(shared.queries, 0);
    attend(shared, sums, softmax, tiles, group);
    softmax.join();
    Bf16* rows = of.out + int64_t{query + group * 64 + warp * 16} * D;
    for (int i = 0; i < D / 8; ++i) store_fragment(rows, 8 * i, sums + 4 * i, softmax);
#endif
}

void launch_wgmma(const AttentionArgs& of, cudaStream_t stream) {
    const auto map = [&](const Bf16* data) {
        const uint64_t rows = static_cast<uint64_t>(of.heads) * static_cast<uint64_t>(of.t);
        return cuda::tile_map(Dtype::bf16, data, {D, rows}, {D * sizeof(Bf16)}, {D, kTile5});
    };
    constexpr int kBytes = sizeof(Shared5) + kAlignment;
    CUDA_CHECK(
        cudaFuncSetAttribute(attention_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    const dim3 blocks(of.t / (kGroups5 * 64), of.heads);
    attention_wgmma<<<blocks, (1 + kGroups5) * kGroup, kBytes, stream>>>(
        Maps5{map(of.q), map(of.k), map(of.v)}, of);
}

}  // namespace

std::vector<Rung> attention_rungs(const AttentionArgs& of) {
    const auto blocks = [of](int queries) { return dim3(of.t / queries, of.heads); };
    std::vector<Rung> rungs = {
        {"naive", 1, [=](cudaStream_t s) { launch_naive(of, s); }},
        {"tiled", 8,
         [=](cudaStream_t s) { attention_tiled<<<blocks(kQueries2), kQueries2, 0, s>>>(of); }},
        {"vectorised", 3,
         [=](cudaStream_t s) { attention_vectorised<<<blocks(kQueries2), kQueries2, 0, s>>>(of); }},
        {"tensor cores", 10,
         [=](cudaStream_t s) { attention_mma<<<blocks(16 * kWarps4), kThreads4, 0, s>>>(of); }},
    };
    if (cuda::has_hopper_code(reinterpret_cast<const void*>(attention_wgmma)))
        rungs.push_back({"hopper", 1.6, [=](cudaStream_t s) { launch_wgmma(of, s); }});
    return rungs;
}

}  // namespace hark::ladder
