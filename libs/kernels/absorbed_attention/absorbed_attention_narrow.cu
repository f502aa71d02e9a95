// The second kernel of absorbed_attention for up to 512 columns and 8 heads on Hopper: softmax(q'
// X^T) X, where a warp has all columns of its keys. Warps of a block take tiles of 16 keys in turn
// and share nothing until an item ends: with few columns a meeting of all warps per tile costs more
// than the tile.
#include "kernels/absorbed_attention/absorbed_attention_run.cuh"
#include "kernels/cuda/shared_memory.cuh"

namespace hark::cuda {
namespace {

constexpr int kNarrowWarps = 4, kNarrowThreads = 32 * kNarrowWarps;
constexpr int kNarrowHeads = 8;
constexpr int kMostNarrowStages = 4;  // of a warp

// Maximum and sum of a head.
using MaxSum = float2;

// Shared memory of a block: a ring of stages for each warp, then what the warps have at the end.
struct NarrowLayout {
    int pitch;      // bytes per key; 8 rows of a fragment hit all banks
    int sum_pitch;  // floats per head; the stores of a warp hit all banks
    int stage, sums, states, arrived, bytes;

    __host__ __device__ NarrowLayout(int c, int stages) : pitch(2 * c + 16), sum_pitch(c + 4) {
        stage = kStage * pitch;
        sums = kNarrowWarps * stages * stage;
        states = sums + kNarrowWarps * kNarrowHeads * sum_pitch * 4;
        arrived = states + kNarrowWarps * kNarrowHeads * int{sizeof(MaxSum)};
        bytes = arrived + kNarrowWarps * kMostNarrowStages * 8;
    }
};

#if HARK_HOPPER_CODE

// The tiles of a warp in the block's items, one after another.
template <class T>
struct WarpTiles {
    const AbsorbedArgs& args;
    int items, item, first = 0;
    Keys<T> keys;

    __device__ WarpTiles(const AbsorbedArgs& args, int items)
        : args(args), items(items), item(blockIdx.x) {
        find();
    }
    __device__ bool has() const { return item < items; }
    __device__ void find() {
        for (; item < items; item += gridDim.x) {
            keys = Keys<T>(args, Item(args, item, 1, 1));
            first = threadIdx.x / 32 * kStage;
            if (first < keys.count) return;
        }
    }
    // Starts the copy of the next tile, if there is one. Called by a whole warp.
    __device__ void copy(unsigned char* stage, uint64_t& arrived, int pitch, uint64_t policy) {
        if (!has()) return;
        const int lane = threadIdx.x % 32;
        if (lane == 0) hopper::arrive_expecting(arrived, kStage * 2 * args.c);
        __syncwarp();
        if (lane < kStage)
            copy_key(stage + lane * pitch, keys.at(first + lane, args.c), 2 * args.c, arrived,
                     policy);
        first += kNarrowWarps * kStage;
        if (first < keys.count) return;
        item += gridDim.x;
        find();
    }
};

// State of a warp for one item. A lane's heads are 2t and 2t + 1.
template <class T, int Steps>
struct NarrowRun {
    uint2 q[Steps];
    float sums[Steps][4];  // columns x heads
    float largest[2], total[2];

    __device__ __forceinline__ void begin(const AbsorbedArgs& args, int row) {
        const int lane = threadIdx.x % 32;
        const uint2* from = args.absorbed + int64_t{row} * Steps * 32 + lane;
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            q[k] = lane / 4 < args.heads ? from[k * 32] : uint2{0, 0};
#pragma unroll
            for (float& sum : sums[k]) sum = 0;
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) largest[j] = -INFINITY, total[j] = 0;
    }

    // Scores of 16 keys, `count` of which are there, as powers: keys x heads in `p`, the operand of
    // the values' product. Returns what the sums so far are multiplied by.
    __device__ __forceinline__ float2 soften(uint32_t (&p)[2], const unsigned char* stage,
                                             int pitch, int count) {
        constexpr int kChains = 4;
        const int lane = threadIdx.x % 32, g = lane / 4;
        float part[kChains][4] = {};
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            uint32_t x[4];  // keys 0-7 and 8-15, then the same of the next 8 columns
            load_matrices<false>(x, stage + lane % 16 * pitch + lane / 16 * 16 + k * 32);
            const uint32_t low[2] = {x[0], x[2]}, high[2] = {x[1], x[3]};
            const uint32_t head[2] = {q[k].x, q[k].y};
            multiply_add<T>(part[k % kChains], low, high, head);
        }
        float factors[2];
        T powers[4];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float score[2];  // of keys g and g + 8
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int v = 2 * i + j;
                score[i] =
                    __fadd_rn(__fadd_rn(part[0][v], part[1][v]), __fadd_rn(part[2][v], part[3][v]));
                if (g + 8 * i >= count) score[i] = -INFINITY;
            }
            float highest = fmaxf(score[0], score[1]);
#pragma unroll
            for (int step = 4; step < 32; step *= 2)
                highest = fmaxf(highest, __shfl_xor_sync(0xffffffff, highest, step));
            highest = fmaxf(largest[j], highest);
            factors[j] = exp2_fast(largest[j] - highest);
            largest[j] = highest;
            float added = 0;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                powers[2 * i + j] = from_f32<T>(exp2_fast(score[i] - highest));
                added = __fadd_rn(added, to_f32(powers[2 * i + j]));
            }
            total[j] = __fmaf_rn(total[j], factors[j], added);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i)
            p[i] = transposed(pack(T{}, to_f32(powers[2 * i]), to_f32(powers[2 * i + 1])));
        return {factors[0], factors[1]};
    }

    // sums = sums * factors + X^T p
    __device__ __forceinline__ void add(const uint32_t (&p)[2], float2 factors,
                                        const unsigned char* stage, int pitch) {
        const int lane = threadIdx.x % 32;
        if (__any_sync(0xffffffff, factors.x != 1 || factors.y != 1)) scale(factors);
#pragma unroll
        for (int k = 0; k < Steps; ++k) {
            uint32_t x[4];  // columns 0-7 and 8-15, then the same of the next 8 keys
            load_matrices<true>(
                x, stage + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 16 + k * 32);
            const uint32_t low[2] = {x[0], x[2]}, high[2] = {x[1], x[3]};
            multiply_add<T>(sums[k], low, high, p);
        }
    }

    __device__ __forceinline__ void scale(float2 factors) {
#pragma unroll
        for (int k = 0; k < Steps; ++k)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                sums[k][j] = __fmul_rn(sums[k][j], j % 2 == 0 ? factors.x : factors.y);
    }

    // Adds the warps' results in their order and writes the item's part of the result. Called by
    // the whole block.
    __device__ __forceinline__ void end(const AbsorbedArgs& args, const Item& item, float* all_sums,
                                        int sum_pitch, MaxSum* states) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int step = 4; step < 32; step *= 2)
                total[j] += __shfl_xor_sync(0xffffffff, total[j], step);
            if (g == 0) states[warp * kNarrowHeads + 2 * t + j] = {largest[j], total[j]};
        }
        __syncthreads();
        float factors[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int h = 2 * t + j;
            float highest = -INFINITY, sum = 0;
#pragma unroll
            for (int w = 0; w < kNarrowWarps; ++w)
                highest = fmaxf(highest, states[w * kNarrowHeads + h].x);
#pragma unroll
            for (int w = 0; w < kNarrowWarps; ++w) {
                const MaxSum state = states[w * kNarrowHeads + h];
                sum = __fmaf_rn(state.y, exp2_fast(state.x - highest), sum);
            }
            factors[j] = __fmul_rn(exp2_fast(largest[j] - highest), __frcp_rn(sum));
            if (threadIdx.x < 4 && h < args.heads)
                args.row_max_sum[(int64_t{item.row} * args.heads + h) * args.splits + item.split] =
                    {highest, sum};
        }
        scale({factors[0], factors[1]});
        float* own = all_sums + (warp * kNarrowHeads + 2 * t) * sum_pitch + g;
#pragma unroll
        for (int k = 0; k < Steps; ++k)
#pragma unroll
            for (int j = 0; j < 4; ++j) own[j % 2 * sum_pitch + k * 16 + j / 2 * 8] = sums[k][j];
        __syncthreads();
        uint2* to =
            args.parts + (int64_t{item.row} * args.splits + item.split) * args.heads * (Steps * 4);
        for (int i = threadIdx.x; i < args.heads * Steps * 4; i += kNarrowThreads) {
            const float* from =
                all_sums + i / (Steps * 4) * sum_pitch + i % (Steps * 4) / 4 * 16 + i % 4 * 2;
            float2 low{}, high{};
#pragma unroll
            for (int w = 0; w < kNarrowWarps; ++w, from += kNarrowHeads * sum_pitch) {
                const float2 a = *reinterpret_cast<const float2*>(from);
                const float2 b = *reinterpret_cast<const float2*>(from + 8);
                low = {__fadd_rn(low.x, a.x), __fadd_rn(low.y, a.y)};
                high = {__fadd_rn(high.x, b.x), __fadd_rn(high.y, b.y)};
            }
            to[i] = {pack(T{}, low.x, low.y), pack(T{}, high.x, high.y)};
        }
    }
};

#endif

// Block i computes the items i, i + blocks, ...; item = row * splits + split. C is 16 * Steps.
template <class T, int Steps>
__global__ void __launch_bounds__(kNarrowThreads, 1)
    narrow_kernel(AbsorbedArgs args, int stages, int items, bool evict) {
#if HARK_HOPPER_CODE
    pdl_trigger();
    extern __shared__ __align__(16) unsigned char shared[];
    const NarrowLayout at(16 * Steps, stages);
    const int warp = threadIdx.x / 32;
    unsigned char* const ring = shared + warp * stages * at.stage;
    uint64_t* const arrived =
        reinterpret_cast<uint64_t*>(shared + at.arrived) + warp * kMostNarrowStages;
    if (threadIdx.x % 32 == 0) {
        for (int i = 0; i < stages; ++i) hopper::init(arrived[i], 1);
        hopper::fence_init();
    }
    __syncwarp();
    const uint64_t policy = hopper::cache_policy(evict);
    if (!args.kv_ready) pdl_wait();
    WarpTiles<T> tiles(args, items);
    for (int i = 0; i < stages; ++i) tiles.copy(ring + i * at.stage, arrived[i], at.pitch, policy);
    pdl_wait();
    NarrowRun<T, Steps> run;
    int place = 0;
    uint32_t parity = 0;
    for (int index = blockIdx.x; index < items; index += gridDim.x) {
        const Item item(args, index, 1, 1);
        const Keys<T> keys(args, item);
        if (keys.count == 0) {
            if (threadIdx.x < args.heads)
                args.row_max_sum[(int64_t{item.row} * args.heads + threadIdx.x) * args.splits +
                                 item.split] = {keys.valid ? -INFINITY : NAN,
                                                keys.valid ? 0.0f : NAN};
            continue;
        }
        run.begin(args, item.row);
        for (int first = warp * kStage; first < keys.count; first += kNarrowWarps * kStage) {
            unsigned char* const stage = ring + place * at.stage;
            hopper::wait(arrived[place], parity);
            uint32_t p[2];
            const float2 factors = run.soften(p, stage, at.pitch, keys.count - first);
            run.add(p, factors, stage, at.pitch);
            __syncwarp();  // all lanes have read the stage
            tiles.copy(stage, arrived[place], at.pitch, policy);
            if (++place == stages) place = 0, parity ^= 1;
        }
        run.end(args, item, reinterpret_cast<float*>(shared + at.sums), at.sum_pitch,
                reinterpret_cast<MaxSum*>(shared + at.states));
    }
#endif
}

template <class T, int Steps>
bool launch_narrow(Context& ctx, const AbsorbedArgs& args) {
    const auto kernel = narrow_kernel<T, Steps>;
    const auto* code = reinterpret_cast<const void*>(kernel);
    if (!has_hopper_code(code)) return false;
    int stages = kMostNarrowStages;
    while (NarrowLayout(args.c, stages).bytes > shared_limit()) --stages;
    const int bytes = NarrowLayout(args.c, stages).bytes, items = args.rows * args.splits;
    allow_shared(code, bytes);
    pdl_launch(ctx, kernel, static_cast<unsigned>(std::min(items, multiprocessors())),
               kNarrowThreads, static_cast<size_t>(bytes), args, stages, items, evicts_keys(args));
    return true;
}

template <class T>
bool launch_narrow(Context& ctx, const AbsorbedArgs& args) {
    if (args.c == 128) return launch_narrow<T, 8>(ctx, args);
    if (args.c == 256) return launch_narrow<T, 16>(ctx, args);
    if (args.c == 384) return launch_narrow<T, 24>(ctx, args);
    return launch_narrow<T, 32>(ctx, args);
}

}  // namespace

bool attend_narrow(Context& ctx, const AbsorbedArgs& args) {
    if (args.c > kMostNarrowColumns || args.heads > kNarrowHeads) return false;
    if (args.type == Dtype::f16) return launch_narrow<__half>(ctx, args);
    return launch_narrow<__nv_bfloat16>(ctx, args);
}

}  // namespace hark::cuda
