// attention on Hopper. One block per multiprocessor, which computes tiles of queries in a loop. One
// warpgroup starts the copies; each of the others has 64 queries of the tile. They take turns at
// the matrix units: one's softmax overlaps with another's products. Each starts the scores of its
// next keys before the products with the values of the current ones.
#include "kernels/attention/flash_wgmma.cuh"
#include "kernels/attention/online_softmax.cuh"

namespace hark::cuda {
namespace {

using namespace hopper;
using namespace wgmma;

// State of a thread for its two queries.
template <class S>
struct Rows {
    float acc[S::kD / 2];  // sums of p * v: 4 of every 8 channels, two per query
    OnlineSoftmax softmax;
    int limits[2];  // keys that the query sees
};

using Scores = float[kKeys / 2];  // as acc; later their probabilities

// Starts scores = q keys^T.
template <class T, class S>
__device__ void start_scores(Scores& scores, uint64_t q, uint64_t keys) {
    fence_products();
#pragma unroll
    for (int c = 0; c < S::kD / 16; ++c) {
        const uint32_t within = c % (kRow / 16) * 32, part = c / (kRow / 16) * 128;
        multiply(T{}, scores, moved(q, within + part * S::kQueries),
                 moved(keys, within + part * kKeys), c > 0);
    }
    commit_products();
}

// Starts acc += p values.
template <class T, class S>
__device__ void start_values(float (&acc)[S::kD / 2], const uint32_t (&p)[kKeys / 16][4],
                             uint64_t values) {
    fence_products();
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) multiply(T{}, acc, p[k], moved(values, k * 16 * 128));
    commit_products();
}

// Scores of keys that a query does not see become -infinity.
template <class S>
__device__ void mask(Scores& scores, const Rows<S>& rows, int first_key) {
    const int column = first_key + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i)
        if (column + i / 4 * 8 + i % 2 >= rows.limits[i / 2 % 2]) scores[i] = -INFINITY;
}

// Rounds p for use as the left operand: the scores already have an operand's layout.
template <class T>
__device__ void round_scores(uint32_t (&p)[kKeys / 16][4], const Scores& scores) {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i)
        p[i / 4][i % 4] = pack(T{}, scores[2 * i], scores[2 * i + 1]);
}

// Writes this thread's two rows of the tile, `row` and row + 8.
template <class T, class S>
__device__ void write_rows(const AttentionArgs& args, const Work& work,
                           const float (&acc)[S::kD / 2], const float (&sums)[2], int row) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float sum = sums[half];
        for (int step = 1; step <= 2; step *= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        const float factor = sum > 0 ? 1.0f / sum : 0.0f;
        const int query = work.first + row + half * 8;
        if (query >= work.n) continue;
        const int64_t at =
            (int64_t{work.start + query} * args.heads + work.h) * S::kD + lane % 4 * 2;
        if (args.out_type == args.cache_type) {
            auto* to = reinterpret_cast<uint32_t*>(static_cast<T*>(args.out) + at);
#pragma unroll
            for (int c = 0; c < S::kD / 8; ++c)
                to[c * 4] =
                    pack(T{}, acc[4 * c + 2 * half] * factor, acc[4 * c + 2 * half + 1] * factor);
        } else {
#pragma unroll
            for (int i = 0; i < S::kD / 4; ++i)
                store_any(args.out, args.out_type, at + i / 2 * 8 + i % 2,
                          acc[i / 2 * 4 + 2 * half + i % 2] * factor);
        }
    }
}

// Turns at the matrix units: a warpgroup waits until the previous one has started its products.
template <class S>
struct Turns {
    int group;
    __device__ void wait() const { sync_part(1 + group, 2 * kGroup); }
    __device__ void pass() const { arrive_part(1 + (group + 1) % S::kGroups, 2 * kGroup); }
};

// A warpgroup with 64 queries of every tile. The steps of all tiles form one chain: the first
// scores of a tile are computed while the last values of the previous tile are multiplied.
template <class T, class S>
class Warpgroup {
  public:
    __device__ Warpgroup(Shared<T, S>& shared, const AttentionArgs& args, int group)
        : shared_(shared),
          args_(args),
          group_(group),
          row_(group * 64 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4),
          turns_{group} {}

    __device__ void run() {
        if (group_ == S::kGroups - 1) turns_.pass();
        if (!open()) return;
        clear();
        start_next_scores();
        wait_products<0>();
        finish_scores();
        round_scores<T>(p_, scores_);
        for (;;) {
            const int old = q_.at;
            const float sums[2] = {rows_.softmax.sums[0], rows_.softmax.sums[1]};
            const bool last = ++step_ == steps_;
            if (last) {
                q_.advance();
                if (!open()) break;
            }
            turns_.wait();
            start_next_scores();
            start_next_values();
            turns_.pass();
            wait_products<1>();
            finish_scores();
            finish_values();
            if (last) {
                write_rows<T, S>(args_, shared_.work[old], rows_.acc, sums, row_);
                __syncwarp();
                done(shared_.for_q.empty[old]);
                clear();
            } else {
#pragma unroll
                for (int i = 0; i < S::kD / 2; ++i) rows_.acc[i] *= kept_[i / 2 % 2];
            }
            round_scores<T>(p_, scores_);
        }
        start_next_values();
        finish_values();
        write_rows<T, S>(args_, shared_.work[q_.at ^ 1], rows_.acc, rows_.softmax.sums, row_);
    }

  private:
    // Each warp reports by itself that it no longer needs a buffer.
    __device__ void done(uint64_t& empty) const {
        if (threadIdx.x % 32 == 0) arrive(empty);
    }

    // Waits for the queries of the next tile and its first keys; false after the last tile.
    __device__ bool open() {
        wait(shared_.for_q.full[q_.at], q_.parity);
        const Work& work = shared_.work[q_.at];
        if (work.n == 0) return false;
        step_ = 0;
        steps_ = work.steps;
        // Causal: the tile's query j sees first_limit + j keys.
        const int first_limit = work.length - work.n + work.first + 1;
        const auto limit = [&](int j) {
            return args_.causal ? min(work.length, first_limit + j) : work.length;
        };
        seen_ = limit(group_ * 64);
        for (int half = 0; half < 2; ++half) rows_.limits[half] = limit(row_ + half * 8);
        rows_.softmax = {};
        wait(shared_.for_keys.full[k_.at], k_.parity);
        return true;
    }

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < S::kD / 2; ++i) rows_.acc[i] = 0;
    }

    __device__ void start_next_scores() {
        start_scores<T, S>(scores_, factor(shared_.q[q_.at][0][group_ * 64]),
                           factor(shared_.keys[k_.at]));
    }

    __device__ void start_next_values() {
        wait(shared_.for_values.full[v_.at], v_.parity);
        start_values<T, S>(rows_.acc, p_, factor(shared_.values[v_.at], kKeys * 128));
    }

    // Called after the wait for the scores: the softmax. Then waits for the next keys; this also
    // keeps the compiler from waiting for the values before the softmax.
    __device__ void finish_scores() {
        pin(scores_);
        done(shared_.for_keys.empty[k_.at]);
        k_.advance();
        if ((step_ + 1) * kKeys > seen_) mask(scores_, rows_, step_ * kKeys);
        soften(scores_, rows_.softmax, kept_, args_.scale_log2);
        pin(scores_);
        if (step_ + 1 < steps_) wait(shared_.for_keys.full[k_.at], k_.parity);
    }

    __device__ void finish_values() {
        wait_products<0>();
        pin(rows_.acc);
        pin(scores_);
        done(shared_.for_values.empty[v_.at]);
        v_.advance();
    }

    Shared<T, S>& shared_;
    const AttentionArgs& args_;
    const int group_, row_;  // row_: this thread's first query of the tile
    const Turns<S> turns_;
    Place<2> q_;
    Place<S::kBuffers> k_, v_;
    Rows<S> rows_;
    Scores scores_;
    uint32_t p_[kKeys / 16][4];
    float kept_[2];
    int step_ = 0, steps_ = 0;  // of the tile
    int seen_ = 0;              // keys that all queries of the warpgroup see
};

template <int N>
__device__ void set_up(Barriers<N>& barriers, int empties) {
    for (int i = 0; i < N; ++i) {
        init(barriers.full[i], 1);
        init(barriers.empty[i], empties);
    }
}

template <class T, class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    wgmma_kernel(const __grid_constant__ Maps maps, const __grid_constant__ AttentionArgs args) {
#if HARK_HOPPER_CODE
    extern __shared__ unsigned char memory[];
    Shared<T, S>& shared =
        *reinterpret_cast<Shared<T, S>*>(memory + (1024 - shared_address(memory) % 1024) % 1024);
    constexpr int kWarps = 4 * S::kGroups;  // warps that multiply
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
        give_registers<S::kCopyRegisters>();
        if (threadIdx.x == 0) copy_queries_and_keys<T, S>(shared, maps, args);
        if (warp == 1) copy_values<T, S>(shared, maps, args);
        if (warp == 2) write_zeros<S>(args);
    } else {
        take_registers<S::kRegisters>();
        Warpgroup<T, S>(shared, args, warp / 4 - 1).run();
    }
#endif
}

template <class T, class S>
bool launch(Context& ctx, const AttentionArgs& args) {
    const auto kernel = wgmma_kernel<T, S>;
    if (!has_hopper_code(reinterpret_cast<const void*>(kernel))) return false;
    constexpr uint64_t kSize = sizeof(T);
    constexpr int kBytes = sizeof(Shared<T, S>) + 1024;  // to align it
    const auto rows = static_cast<uint64_t>(args.rows);
    const auto stride = static_cast<uint64_t>(args.q_stride);
    const auto capacity = static_cast<uint64_t>(args.capacity);
    const auto heads = static_cast<uint64_t>(args.slots * args.kv_heads);
    const uint32_t box = args.blocks == 1 ? kKeys : kBoxKeys;
    const auto cache = [&](const void* data) {
        if (args.packed)
            return tile_map(args.cache_type, data,
                            {static_cast<uint64_t>(args.kv_heads) * S::kD, capacity,
                             static_cast<uint64_t>(args.sequences)},
                            {stride * kSize, capacity * stride * kSize}, {kRow, box, 1});
        return tile_map(args.cache_type, data, {S::kD, capacity, heads},
                        {S::kD * kSize, capacity * S::kD * kSize}, {kRow, box, 1});
    };
    const Maps maps = {
        tile_map(args.q_type, args.q, {stride, rows}, {stride * kSize}, {kRow, S::kQueries}),
        cache(args.keys), cache(args.values)};
    const int64_t tiles = ceil_div(args.max_queries, S::kQueries) * args.heads * args.sequences;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(tiles, multiprocessors()));
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    kernel<<<blocks, S::kThreads, kBytes, stream_of(ctx)>>>(maps, args);
    CUDA_CHECK(cudaGetLastError());
    return true;
}

// Queries that the multiprocessor with most tiles of S computes.
template <class S>
int64_t most_queries(const AttentionArgs& args) {
    const int64_t tiles = ceil_div(args.max_queries, S::kQueries) * args.heads * args.sequences;
    return ceil_div(tiles, multiprocessors()) * S::kQueries;
}

template <class T>
bool launch_shape(Context& ctx, const AttentionArgs& args) {
    if (args.d == 128) return launch<T, Shape<128, 2>>(ctx, args);
    if (args.d != 64) return false;
    // Three warpgroups use the matrix units better, by a tenth; two waste less at the diagonal and
    // fill the multiprocessors more evenly.
    const bool two = args.causal || args.max_queries <= Shape<64, 2>::kQueries ||
                     11 * most_queries<Shape<64, 2>>(args) < 10 * most_queries<Shape<64, 3>>(args);
    return two ? launch<T, Shape<64, 2>>(ctx, args) : launch<T, Shape<64, 3>>(ctx, args);
}

}  // namespace

bool attention_flash_wgmma(Context& ctx, const AttentionArgs& args) {
    if (args.blocks > 1 && args.capacity % kBoxKeys != 0) return false;
    return args.cache_type == Dtype::f16 ? launch_shape<__half>(ctx, args)
                                         : launch_shape<__nv_bfloat16>(ctx, args);
}

}  // namespace hark::cuda
