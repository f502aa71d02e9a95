// The middle of folded_attention: softmax(q' X^T) X for a run of keys, q' one row's folded queries.
//
// A block goes through its keys in tiles of 32 that arrive in shared memory stage by stage (16
// keys, asynchronous copies), each read there twice: for the scores, X (keys x columns) times q'^T
// (columns x heads), and for the sums, X^T (columns x keys) times the powers (keys x heads). A warp
// owns an eighth of the columns: its part of q' and its sums stay in registers. The warps' parts of
// a score are added in order; the softmax runs on with each tile, as in FlashAttention.
#include <cuda_pipeline.h>

#include "kernels/attention_kernels.cuh"
#include "kernels/folded_attention.cuh"
#include "kernels/hopper.cuh"
#include "kernels/linear_rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kThreads = 32 * kFoldedWarps;
constexpr int kStage = 16;  // keys
constexpr int kNever = -1;

// Shared memory of a block for `heads` heads in tiles of 8.
struct Layout {
    int pitch;  // bytes of a key: 8 rows of a fragment then meet all banks
    int scores, powers, kept, row, bytes;

    __host__ __device__ Layout(int c, int heads, int head_tiles, int keys, int stages)
        : pitch(2 * c + 16) {
        scores = stages * kStage * pitch;
        powers = scores + kFoldedWarps * heads * (keys + 4) * 4;
        kept = powers + head_tiles * 8 * (keys + 8) * 2;
        row = kept + head_tiles * 8 * 4;
        bytes = row + 16;
    }
};

// Which sequence the row belongs to, or kNever; for all threads of the block.
__device__ int sequence_of(const FoldedArgs& args, int row, int* shared) {
    if (args.one_each) return row;
    if (threadIdx.x == 0) *shared = kNever;
    __syncthreads();
    for (int b = threadIdx.x; b < args.sequences; b += kThreads)
        if (args.query_start[b] <= row && row < args.query_start[b + 1]) *shared = b;
    __syncthreads();
    return *shared;
}

// The keys of a block: `count` rows of X from `first` on. Where slot or length point outside there
// are none, and `valid` is false.
template <class T>
struct Keys {
    const T* first;
    int count;
    bool valid;

    __device__ Keys(const FoldedArgs& args, int b, int split) : first(nullptr), count(0) {
        const int slot = b == kNever ? -1 : args.slot[b], length = b == kNever ? 0 : args.length[b];
        valid = 0 <= slot && slot < args.slots && 0 <= length && length <= args.frames;
        if (!valid) return;
        count = min(max(length - split * kFoldedSplit, 0), kFoldedSplit);
        first = static_cast<const T*>(args.heard) +
                (int64_t{slot} * args.frames + split * kFoldedSplit) * args.c;
    }
    // Starts copying keys [kStage * stage, ..) to `to`; those behind the last one become zeros.
    __device__ void copy(unsigned char* to, int stage, int c, int pitch) const {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < kStage / kFoldedWarps; ++i) {
            const int row = warp * (kStage / kFoldedWarps) + i, key = stage * kStage + row;
            const bool there = key < count;
            const T* from = first + int64_t{there ? key : 0} * c;
            for (int chunk = lane; chunk < c / 8; chunk += 32)
                __pipeline_memcpy_async(to + row * pitch + chunk * 16, from + chunk * 8, 16,
                                        there ? 0 : 16);
        }
    }
};

// All but the newest N stages have arrived.
template <int TileStages>
__device__ void wait_for_tile(int stages) {
    if (stages - TileStages == 3) {
        __pipeline_wait_prior(3);
    } else {
        __pipeline_wait_prior(1);
    }
}

// The transpose of an 8 x 8 matrix that is spread over the warp: lane 4 g + t has row g, columns 2t
// and 2t + 1.
__device__ inline uint32_t transposed(uint32_t pair) {
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(pair) : "r"(pair));
    return pair;
}

template <class T>
__device__ uint32_t rounded_bits(float x) {
    const T value = from_f32<T>(x);
    return *reinterpret_cast<const uint16_t*>(&value);
}

// Block (split and tiles of 8 heads, row). Steps is C / 128, at most; for 10, exactly.
template <class T, int Steps, int HeadTiles, int TileKeys>
__global__ void __launch_bounds__(kThreads, 1)
    attend_kernel(FoldedArgs args, int stages, bool few) {
    let_next_start();
    constexpr int kTileStages = TileKeys / kStage, kScorePitch = TileKeys + 4;
    constexpr int kPowerPitch = TileKeys + 8;
    extern __shared__ __align__(16) unsigned char shared[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int split = blockIdx.x % args.splits, row = blockIdx.y;
    const int first_tile = blockIdx.x / args.splits * HeadTiles;
    const int steps = Steps == 10 ? 10 : args.c / 128;
    const int heads = min(args.heads - first_tile * 8, HeadTiles * 8);
    const Layout at(args.c, heads, HeadTiles, TileKeys, stages);
    float* scores = reinterpret_cast<float*>(shared + at.scores);
    T* powers = reinterpret_cast<T*>(shared + at.powers);
    float* kept = reinterpret_cast<float*>(shared + at.kept);

    const int b = sequence_of(args, args.first_row + row, reinterpret_cast<int*>(shared + at.row));
    const Keys<T> keys(args, b, split);
    float2* tops = args.tops + (int64_t{row} * args.heads + first_tile * 8) * args.splits + split;
    if (keys.count == 0) {
        wait_for_previous();
        const float nothing = keys.valid ? 0.0f : NAN;
        if (threadIdx.x < heads)
            tops[threadIdx.x * args.splits] = {keys.valid ? -INFINITY : NAN, nothing};
        return;
    }
    if (few)
        for (int i = threadIdx.x * 64; i < keys.count * args.c; i += kThreads * 64)
            prefetch(keys.first + i);
    // Heads that fill a tile up weigh nothing and are never rescaled.
    for (int i = threadIdx.x; i < HeadTiles * 8 * kPowerPitch; i += kThreads)
        powers[i] = from_f32<T>(0);
    if (threadIdx.x < HeadTiles * 8) kept[threadIdx.x] = 1;
    wait_for_previous();

    const int tiles = (keys.count + TileKeys - 1) / TileKeys, last = tiles * kTileStages;
    int next = 0, place = 0;  // the next stage to copy, and where the ring begins
    const auto copy_next = [&](int to) {
        if (next < last) keys.copy(shared + to * kStage * at.pitch, next, args.c, at.pitch);
        __pipeline_commit();
        ++next;
    };
    for (int i = 0; i < stages; ++i) copy_next(i);

    uint2 q[Steps][HeadTiles];
#pragma unroll
    for (int k = 0; k < Steps; ++k)
#pragma unroll
        for (int n = 0; n < HeadTiles; ++n) {
            q[k][n] = {0, 0};
            if (k < steps && n * 8 + g < heads)
                q[k][n] = args.folded[((int64_t{row} * args.blocks() + warp * steps + k) *
                                           args.head_tiles() +
                                       first_tile + n) *
                                          32 +
                                      lane];
        }
    float sums[Steps][HeadTiles][4] = {};
    float largest[HeadTiles], total[HeadTiles] = {};  // of heads warp + 8 j
#pragma unroll
    for (int j = 0; j < HeadTiles; ++j) largest[j] = -INFINITY;
    const int own = warp * steps * 32;  // the warp's columns, in bytes

    for (int tile = 0; tile < tiles; ++tile) {
        const unsigned char* stage[kTileStages];
        int places[kTileStages];
#pragma unroll
        for (int i = 0; i < kTileStages; ++i) {
            places[i] = place + i < stages ? place + i : place + i - stages;
            stage[i] = shared + places[i] * kStage * at.pitch + own;
        }
        place = place + kTileStages < stages ? place + kTileStages : place + kTileStages - stages;
        wait_for_tile<kTileStages>(stages);
        __syncthreads();

        float part[kTileStages][HeadTiles][4] = {};
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            if (k >= steps) break;
#pragma unroll
            for (int i = 0; i < kTileStages; ++i) {
                uint32_t x[4];  // keys 0-7 and 8-15, then the same of the next 8 columns
                load_matrices<false>(x, stage[i] + lane % 16 * at.pitch + lane / 16 * 16 + k * 32);
                const uint32_t low[2] = {x[0], x[2]}, high[2] = {x[1], x[3]};
#pragma unroll
                for (int n = 0; n < HeadTiles; ++n) {
                    const uint32_t head[2] = {q[k][n].x, q[k][n].y};
                    multiply_add<T>(part[i][n], low, high, head);
                }
            }
        }
#pragma unroll
        for (int n = 0; n < HeadTiles; ++n) {
            if (n * 8 + 2 * t >= heads) break;
            float* to = scores + (warp * heads + n * 8 + 2 * t) * kScorePitch + g;
#pragma unroll
            for (int i = 0; i < kTileStages; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    to[j % 2 * kScorePitch + i * kStage + j / 2 * 8] = part[i][n][j];
        }
        __syncthreads();

        const bool there = lane < TileKeys && tile * TileKeys + lane < keys.count;
#pragma unroll
        for (int j = 0; j < HeadTiles; ++j) {
            const int h = warp + 8 * j;
            if (h >= heads) break;
            float score = 0;
#pragma unroll
            for (int w = 0; w < kFoldedWarps; ++w)
                score = __fadd_rn(score, scores[(w * heads + h) * kScorePitch + lane % TileKeys]);
            score = there ? score : -INFINITY;
            const float highest = fmaxf(largest[j], warp_max(score));
            const float factor = exp2_from(largest[j], highest);
            const T power = from_f32<T>(exp2_from(score, highest));
            largest[j] = highest;
            total[j] = __fmaf_rn(total[j], factor, to_f32(power));
            if (lane < TileKeys) powers[h * kPowerPitch + lane] = power;
            if (lane == 0) kept[h] = factor;
        }
        __syncthreads();

        uint32_t p[HeadTiles][4];  // keys 0-7, 8-15, 16-23, 24-31
        float2 factors[HeadTiles];
        bool changed = false;
#pragma unroll
        for (int n = 0; n < HeadTiles; ++n) {
            load_matrices<false>(
                p[n], powers + (n * 8 + lane % 8) * kPowerPitch + lane / 8 % (TileKeys / 8) * 8);
            factors[n] = *reinterpret_cast<const float2*>(kept + n * 8 + 2 * t);
            changed = changed || factors[n].x != 1 || factors[n].y != 1;
        }
        if (__any_sync(0xffffffff, changed)) {
#pragma unroll
            for (int k = 0; k < Steps; ++k)
#pragma unroll
                for (int n = 0; n < HeadTiles; ++n)
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        sums[k][n][j] =
                            __fmul_rn(sums[k][n][j], j % 2 == 0 ? factors[n].x : factors[n].y);
        }
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            if (k >= steps) break;
#pragma unroll
            for (int i = 0; i < kTileStages; ++i) {
                uint32_t x[4];  // columns 0-7 and 8-15, then the same of the next 8 keys
                load_matrices<true>(x, stage[i] + (lane / 16 * 8 + lane % 8) * at.pitch +
                                           lane / 8 % 2 * 16 + k * 32);
                const uint32_t low[2] = {x[0], x[2]}, high[2] = {x[1], x[3]};
#pragma unroll
                for (int n = 0; n < HeadTiles; ++n) {
                    const uint32_t head[2] = {p[n][2 * i], p[n][2 * i + 1]};
                    multiply_add<T>(sums[k][n], low, high, head);
                }
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kTileStages; ++i) copy_next(places[i]);
    }

#pragma unroll
    for (int j = 0; j < HeadTiles; ++j) {
        const int h = warp + 8 * j;
        if (h >= heads) break;
        const float sum = warp_sum(total[j]);
        if (lane == 0) {
            kept[h] = __frcp_rn(sum);
            tops[h * args.splits] = {largest[j], sum};
        }
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < HeadTiles; ++n) {
        const int h = n * 8 + g;
        const float2 inverse = *reinterpret_cast<const float2*>(kept + n * 8 + 2 * t);
        uint2* to = args.parts +
                    ((int64_t{row} * args.splits + split) * args.heads + first_tile * 8 + h) *
                        args.blocks() * 4 +
                    warp * steps * 4 + t;
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            if (k >= steps) break;
            const float(&s)[4] = sums[k][n];
            const uint2 both = {transposed(pack(T{}, s[0] * inverse.x, s[1] * inverse.y)),
                                transposed(pack(T{}, s[2] * inverse.x, s[3] * inverse.y))};
            if (h < heads) to[k * 4] = both;
        }
    }
}

int shared_limit() {
    int device = 0, bytes = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return bytes;
}

template <class T, int Steps, int HeadTiles, int TileKeys>
void launch(Context& ctx, const FoldedArgs& args, int stages) {
    const int groups = static_cast<int>(ceil_div(args.head_tiles(), HeadTiles));
    const Layout layout(args.c, std::min(args.heads, HeadTiles * 8), HeadTiles, TileKeys, stages);
    const auto kernel = attend_kernel<T, Steps, HeadTiles, TileKeys>;
    const bool few = int64_t{args.rows} * args.splits * groups <= multiprocessors();
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, layout.bytes));
    launch_early(
        ctx, kernel,
        dim3(static_cast<unsigned>(args.splits * groups), static_cast<unsigned>(args.rows)),
        kThreads, layout.bytes, args, stages, few);
}

// Few rows are spread over more blocks, each with 8 of the heads. Tiles of 32 keys in 5 stages
// where shared memory holds them (compute capability 9.0), or in 3 (8.0), else tiles of 16 in 2.
template <class T, int Steps, int HeadTiles>
void launch(Context& ctx, const FoldedArgs& args) {
    const int limit = shared_limit();
    const auto fits = [&](int keys, int stages) {
        return Layout(args.c, args.heads, HeadTiles, keys, stages).bytes <= limit;
    };
    const int stages = fits(32, 5) ? 5 : 3;
    if (!fits(32, stages)) return launch<T, Steps, HeadTiles, 16>(ctx, args, 2);
    const bool few = args.rows * args.splits * args.head_tiles() <= multiprocessors();
    if (few) return launch<T, Steps, 1, 32>(ctx, args, stages);
    launch<T, Steps, HeadTiles, 32>(ctx, args, stages);
}

template <class T>
void launch(Context& ctx, const FoldedArgs& args) {
    if (args.c <= 512) return launch<T, 4, 1>(ctx, args);
    if (args.c <= 1024) return launch<T, 8, 2>(ctx, args);
    launch<T, 10, 3>(ctx, args);
}

}  // namespace

void attend_folded(Context& ctx, const FoldedArgs& args) {
    if (args.type == Dtype::f16) {
        launch<__half>(ctx, args);
    } else {
        launch<__nv_bfloat16>(ctx, args);
    }
}

}  // namespace hark::cuda
