// attention on Hopper. A block per multiprocessor goes through tiles of queries. One of its
// warpgroups only starts copies; each of the others has 64 queries of the tile. These take turns at
// the matrix units, so that one's softmax runs beside another's products, and each starts the
// scores of its next keys before it weighs the values of these.
#include "kernels/attention_kernels.cuh"
#include "kernels/hopper.cuh"

namespace hark::cuda {
namespace {

using namespace hopper;

constexpr int kKeys = 128;   // of a step
constexpr int kRow = 64;     // channels of a row in shared memory: the swizzle's 128 bytes
constexpr int kGroup = 128;  // threads of a warpgroup

// How a block is made up. Scores, probabilities and sums fill the registers: 160 a thread with
// three warpgroups at 64 channels, 232 with two at 128.
template <int D>
struct Shape {
    static constexpr int kGroups = D == 64 ? 3 : 2;
    static constexpr int kQueries = 64 * kGroups;
    static constexpr int kThreads = kGroup * (kGroups + 1);
    static constexpr int kBuffers = D == 64 ? 4 : 2;  // of keys and of values
    static constexpr int kRegisters = D == 64 ? 160 : 232, kCopyRegisters = D == 64 ? 32 : 40;
};

template <int N>
struct Barriers {
    uint64_t full[N], empty[N];
};

template <class T, int D>
struct Shared {
    T q[2][D / kRow][Shape<D>::kQueries][kRow];
    T keys[Shape<D>::kBuffers][D / kRow][kKeys][kRow];
    T values[Shape<D>::kBuffers][D / kRow][kKeys][kRow];
    Barriers<2> for_q;
    Barriers<Shape<D>::kBuffers> for_keys, for_values;
    uint64_t patched;  // values whose rows behind the length are still to be cleared have arrived
};

struct Maps {
    CUtensorMap q, keys, values;
};

// A tile of queries of one head.
struct Work {
    int h, slot;
    int start, n, first;  // the sequence's first row, its queries, the tile's first of them
    int length, end;      // the sequence's keys, and those that the tile sees

    __device__ int steps() const { return end > 0 ? 1 + (end - 1) / kKeys : 0; }
};

// A block's tiles, one after another. Neighbouring blocks have the tiles of one head, which read
// the same keys, at the same time. Causal tiles differ in length: those of as many heads as there
// are blocks go from the longest to the shortest, and every other round backwards.
template <int D>
class Schedule {
  public:
    __device__ explicit Schedule(const AttentionArgs& args)
        : args_(args), tiles_((static_cast<int>(args.max_queries) + kQueries - 1) / kQueries) {}

    // Moves to the next tile that has queries and keys to see; those without keys too if `empty`.
    __device__ bool next(Work& work, bool empty) {
        const int heads = args_.heads * args_.sequences, blocks = static_cast<int>(gridDim.x);
        for (;;) {
            const int block = static_cast<int>(blockIdx.x);
            const int place = args_.causal && round_ % 2 ? blocks - 1 - block : block;
            const int index = round_++ * blocks + place;
            if ((round_ - 1) * blocks >= heads * tiles_) return false;
            if (index >= heads * tiles_) continue;
            int head = index / tiles_, tile = index % tiles_;
            if (args_.causal) {
                const int group = index / (blocks * tiles_);
                const int rest = index - group * blocks * tiles_;
                const int in_group = min(blocks, heads - group * blocks);
                head = group * blocks + rest % in_group;
                tile = tiles_ - 1 - rest / in_group;
            }
            const int b = head / args_.heads;
            work.h = head - b * args_.heads;
            work.first = tile * kQueries;
            work.start = args_.query_start[b];
            work.n = args_.query_start[b + 1] - work.start;
            if (work.first >= work.n) continue;
            work.length = args_.length[b];
            work.slot = args_.slot[b];
            work.end = args_.visible(b, work.n, min(work.first + kQueries, work.n) - 1);
            if (work.end > 0 || empty) return true;
        }
    }

  private:
    static constexpr int kQueries = Shape<D>::kQueries;
    const AttentionArgs& args_;
    int tiles_, round_ = 0;
};

__device__ int cache_head(const AttentionArgs& args, const Work& work) {
    return work.slot * args.kv_heads + work.h / (args.heads / args.kv_heads);
}

// One thread: starts the copies of all queries and keys.
template <class T, int D>
__device__ void copy_queries_and_keys(Shared<T, D>& shared, const Maps& maps,
                                      const AttentionArgs& args) {
    Schedule<D> schedule(args);
    Place<2> q;
    Place<Shape<D>::kBuffers> place;
    for (Work work; schedule.next(work, false); q.advance()) {
        wait(shared.for_q.empty[q.at], q.parity ^ 1);
        arrive_expecting(shared.for_q.full[q.at], sizeof shared.q[0]);
        for (int part = 0; part < D / kRow; ++part)
            copy_box(shared.q[q.at][part], maps.q, shared.for_q.full[q.at],
                     work.h * D + part * kRow, work.start + work.first);
        for (int step = 0; step < work.steps(); ++step, place.advance()) {
            wait(shared.for_keys.empty[place.at], place.parity ^ 1);
            arrive_expecting(shared.for_keys.full[place.at], sizeof shared.keys[0]);
            for (int part = 0; part < D / kRow; ++part)
                copy_box(shared.keys[place.at][part], maps.keys, shared.for_keys.full[place.at],
                         part * kRow, step * kKeys, cache_head(args, work));
        }
    }
}

// One warp: starts the copies of all values. Rows behind the length have probability 0, but 0 times
// what uninitialised memory may hold is not 0, so the warp clears them once they have arrived.
template <class T, int D>
__device__ void copy_values(Shared<T, D>& shared, const Maps& maps, const AttentionArgs& args) {
    const int lane = threadIdx.x % 32;
    Schedule<D> schedule(args);
    Place<Shape<D>::kBuffers> place;
    uint32_t patched = 0;  // parity
    for (Work work; schedule.next(work, false);)
        for (int step = 0; step < work.steps(); ++step, place.advance()) {
            const int kept = work.length - step * kKeys;
            // Behind the capacity there are zeros already.
            const bool patch = kept < kKeys && work.length < args.capacity;
            uint64_t& full = shared.for_values.full[place.at];
            uint64_t& arrived = patch ? shared.patched : full;
            auto& values = shared.values[place.at];
            wait(shared.for_values.empty[place.at], place.parity ^ 1);
            if (lane == 0) {
                arrive_expecting(arrived, sizeof values);
                for (int part = 0; part < D / kRow; ++part)
                    copy_box(values[part], maps.values, arrived, part * kRow, step * kKeys,
                             cache_head(args, work));
            }
            if (!patch) continue;
            wait(arrived, patched);
            patched ^= 1;
            constexpr int kPacks = kRow * sizeof(T) / 16;  // of a row
            for (int part = 0; part < D / kRow; ++part)
                for (int i = kept * kPacks + lane; i < kKeys * kPacks; i += 32)
                    reinterpret_cast<uint4*>(values[part])[i] = {};
            fence_stores();
            __syncwarp();
            if (lane == 0) arrive(full);
        }
}

// What a thread keeps of two queries, lane / 4 and lane / 4 + 8 of its warp's 16.
template <int D>
struct Rows {
    float acc[D / 2];  // sums of p * v: 4 of every 8 channels, two a query
    float largest[2];
    float sums[2];  // of this lane's p
    int limits[2];  // keys that the query sees
};

using Scores = float[kKeys / 2];  // as acc; then their probabilities

// scores = q keys^T, started
template <class T, int D>
__device__ void start_scores(Scores& scores, uint64_t q, uint64_t keys) {
    fence_products();
#pragma unroll
    for (int c = 0; c < D / 16; ++c) {
        const uint32_t within = c % (kRow / 16) * 32, part = c / (kRow / 16) * 128;
        multiply(T{}, scores, moved(q, within + part * Shape<D>::kQueries),
                 moved(keys, within + part * kKeys), c > 0);
    }
    commit_products();
}

// acc += p values, started
template <class T, int D>
__device__ void start_values(float (&acc)[D / 2], const uint32_t (&p)[kKeys / 16][4],
                             uint64_t values) {
    fence_products();
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) multiply(T{}, acc, p[k], moved(values, k * 16 * 128));
    commit_products();
}

// Scores of keys that a query does not see become -infinity.
template <int D>
__device__ void mask(Scores& scores, const Rows<D>& rows, int first_key) {
    const int column = first_key + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i)
        if (column + i / 4 * 8 + i % 2 >= rows.limits[i / 2 % 2]) scores[i] = -INFINITY;
}

// scores become p = 2^((score - largest so far) * scale). kept: by what earlier sums shrink. The
// scale is positive, so that the largest score is the largest scaled too.
template <int D>
__device__ void soften(Scores& scores, Rows<D>& rows, float (&kept)[2], float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float highest = rows.largest[half], other = -INFINITY;
#pragma unroll
        for (int i = 2 * half; i < kKeys / 2; i += 4) {
            highest = fmaxf(highest, scores[i]);
            other = fmaxf(other, scores[i + 1]);
        }
        highest = fmaxf(highest, other);
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffff, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffff, highest, 2));
        // Where nothing has been seen yet there is no infinity to subtract.
        const float shift = highest == -INFINITY ? 0.0f : highest * scale_log2;
        kept[half] = exp2_fast(fmaf(rows.largest[half], scale_log2, -shift));
        rows.largest[half] = highest;
        float sum = 0, odd = 0;
#pragma unroll
        for (int i = 2 * half; i < kKeys / 2; i += 4) {
            sum += scores[i] = exp2_fast(fmaf(scores[i], scale_log2, -shift));
            odd += scores[i + 1] = exp2_fast(fmaf(scores[i + 1], scale_log2, -shift));
        }
        rows.sums[half] = fmaf(rows.sums[half], kept[half], sum + odd);
    }
}

// p as the left factor: the scores' layout is that of a factor already.
template <class T>
__device__ void round_scores(uint32_t (&p)[kKeys / 16][4], const Scores& scores) {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i)
        p[i / 4][i % 4] = pack(T{}, scores[2 * i], scores[2 * i + 1]);
}

template <class T, int D>
__device__ void write_rows(const AttentionArgs& args, const Work& work, const Rows<D>& rows,
                           int query) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float sum = rows.sums[half];
        for (int step = 1; step <= 2; step *= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        const float factor = sum > 0 ? 1.0f / sum : 0.0f;
        if (query + half * 8 >= work.n) continue;
        const int64_t row = (int64_t{work.start + query + half * 8} * args.heads + work.h) * D;
        const int64_t at = row + lane % 4 * 2;
        if (args.out_type == args.cache_type) {
            auto* to = reinterpret_cast<uint32_t*>(static_cast<T*>(args.out) + at);
#pragma unroll
            for (int c = 0; c < D / 8; ++c)
                to[c * 4] = pack(T{}, rows.acc[4 * c + 2 * half] * factor,
                                 rows.acc[4 * c + 2 * half + 1] * factor);
        } else {
#pragma unroll
            for (int i = 0; i < D / 4; ++i)
                store_any(args.out, args.out_type, at + i / 2 * 8 + i % 2,
                          rows.acc[i / 2 * 4 + 2 * half + i % 2] * factor);
        }
    }
}

// The turns at the matrix units: a warpgroup waits until the one before it has started its
// products.
template <int D>
struct Turns {
    int group;
    __device__ void wait() const { sync_part(1 + group, 2 * kGroup); }
    __device__ void pass() const { arrive_part(1 + (group + 1) % Shape<D>::kGroups, 2 * kGroup); }
};

// A warpgroup with 64 queries of every tile.
template <class T, int D>
__device__ void multiply_tiles(Shared<T, D>& shared, const AttentionArgs& args, int group) {
    const int lane = threadIdx.x % 32;
    const auto done = [lane](uint64_t& empty) {
        if (lane == 0) arrive(empty);
    };
    const Turns<D> turns{group};
    if (group == Shape<D>::kGroups - 1) turns.pass();
    Schedule<D> schedule(args);
    Place<2> q;
    Place<Shape<D>::kBuffers> k, v;
    Scores scores;
    uint32_t p[kKeys / 16][4];
    float kept[2];
    for (Work work; schedule.next(work, true);) {
        Rows<D> rows;
#pragma unroll
        for (int i = 0; i < D / 2; ++i) rows.acc[i] = 0;
        const int query = work.first + group * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
        for (int half = 0; half < 2; ++half) {
            rows.largest[half] = -INFINITY;
            rows.sums[half] = 0;
            rows.limits[half] = min(
                work.length, args.causal ? work.length - work.n + query + half * 8 + 1 : INT_MAX);
        }
        const int steps = work.steps();
        if (steps > 0) {
            // Up to here all of the warpgroup's queries see every key.
            const int full =
                min(work.length,
                    args.causal ? work.length - work.n + work.first + group * 64 + 1 : INT_MAX);
            wait(shared.for_q.full[q.at], q.parity);
            const uint64_t own = factor(shared.q[q.at][0][group * 64]);
            wait(shared.for_keys.full[k.at], k.parity);
            start_scores<T, D>(scores, own, factor(shared.keys[k.at]));
            wait_products<0>();
            pin(scores);
            done(shared.for_keys.empty[k.at]);
            k.advance();
            if (kKeys > full) mask(scores, rows, 0);
            soften(scores, rows, kept, args.scale_log2);
            round_scores<T>(p, scores);
            if (steps > 1) wait(shared.for_keys.full[k.at], k.parity);
            for (int step = 1; step < steps; ++step) {
                turns.wait();
                start_scores<T, D>(scores, own, factor(shared.keys[k.at]));
                wait(shared.for_values.full[v.at], v.parity);
                start_values<T, D>(rows.acc, p, factor(shared.values[v.at], kKeys * 128));
                turns.pass();
                wait_products<1>();
                pin(scores);
                done(shared.for_keys.empty[k.at]);
                k.advance();
                if ((step + 1) * kKeys > full) mask(scores, rows, step * kKeys);
                soften(scores, rows, kept, args.scale_log2);
                pin(scores);
                // The compiler would wait for the sums before the softmax, were they not apart.
                if (step + 1 < steps) wait(shared.for_keys.full[k.at], k.parity);
                wait_products<0>();
                pin(rows.acc);
                pin(scores);
                done(shared.for_values.empty[v.at]);
                v.advance();
                {
#pragma unroll
                    for (int i = 0; i < D / 2; ++i) rows.acc[i] *= kept[i / 2 % 2];
                }
                round_scores<T>(p, scores);
            }
            done(shared.for_q.empty[q.at]);
            q.advance();
            wait(shared.for_values.full[v.at], v.parity);
            start_values<T, D>(rows.acc, p, factor(shared.values[v.at], kKeys * 128));
            wait_products<0>();
            pin(rows.acc);
            done(shared.for_values.empty[v.at]);
            v.advance();
        }
        write_rows<T, D>(args, work, rows, query);
    }
}

template <int N>
__device__ void set_up(Barriers<N>& barriers, int empties) {
    for (int i = 0; i < N; ++i) {
        hopper::init(barriers.full[i], 1);
        hopper::init(barriers.empty[i], empties);
    }
}

template <class T, int D>
__global__ void __launch_bounds__(Shape<D>::kThreads, 1)
    wgmma_kernel(const __grid_constant__ Maps maps, const __grid_constant__ AttentionArgs args) {
#if HARK_HOPPER_CODE
    extern __shared__ unsigned char memory[];
    Shared<T, D>& shared =
        *reinterpret_cast<Shared<T, D>*>(memory + (1024 - shared_address(memory) % 1024) % 1024);
    constexpr int kWarps = 4 * Shape<D>::kGroups;  // that multiply
    if (threadIdx.x == 0) {
        set_up(shared.for_q, kWarps);
        set_up(shared.for_keys, kWarps);
        set_up(shared.for_values, kWarps);
        init(shared.patched, 1);
        fence_init();
    }
    __syncthreads();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    if (warp < 4) {
        give_registers<Shape<D>::kCopyRegisters>();
        if (threadIdx.x == 0) copy_queries_and_keys<T, D>(shared, maps, args);
        if (warp == 1) copy_values<T, D>(shared, maps, args);
    } else {
        take_registers<Shape<D>::kRegisters>();
        multiply_tiles<T, D>(shared, args, warp / 4 - 1);
    }
#endif
}

template <class T, int D>
bool launch(Context& ctx, const AttentionArgs& args) {
    const auto kernel = wgmma_kernel<T, D>;
    if (!has_hopper_code(reinterpret_cast<const void*>(kernel))) return false;
    constexpr uint64_t kSize = sizeof(T);
    constexpr int kBytes = sizeof(Shared<T, D>) + 1024;  // to align it
    const auto rows = static_cast<uint64_t>(args.rows);
    const auto stride = static_cast<uint64_t>(args.q_stride);
    const auto capacity = static_cast<uint64_t>(args.capacity);
    const auto heads = static_cast<uint64_t>(args.slots * args.kv_heads);
    const auto cache = [&](const void* data) {
        return tile_map(args.cache_type, data, {D, capacity, heads},
                        {D * kSize, capacity * D * kSize}, {kRow, kKeys, 1});
    };
    const Maps maps = {
        tile_map(args.q_type, args.q, {stride, rows}, {stride * kSize}, {kRow, Shape<D>::kQueries}),
        cache(args.keys), cache(args.values)};
    const int64_t tiles =
        ceil_div(args.max_queries, Shape<D>::kQueries) * args.heads * args.sequences;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(tiles, multiprocessors()));
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    kernel<<<blocks, Shape<D>::kThreads, kBytes, stream_of(ctx)>>>(maps, args);
    CUDA_CHECK(cudaGetLastError());
    return true;
}

}  // namespace

bool attention_by_wgmma(Context& ctx, const AttentionArgs& args) {
    const bool half = args.cache_type == Dtype::f16;
    if (args.d == 64)
        return half ? launch<__half, 64>(ctx, args) : launch<__nv_bfloat16, 64>(ctx, args);
    if (args.d == 128)
        return half ? launch<__half, 128>(ctx, args) : launch<__nv_bfloat16, 128>(ctx, args);
    return false;
}

}  // namespace hark::cuda
