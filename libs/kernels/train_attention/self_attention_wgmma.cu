// Self-attention for training on Hopper. A block has one or two pairs of warpgroups; each pair
// takes the next tile of 128 queries of one head in a loop. One warp starts the copies; two
// warpgroups have 64 queries each and go through steps of 64 or 128 keys, up to their own diagonal.
// A warpgroup overlaps its softmax with products of the others. Each starts the scores of its next
// keys before the products with the current values, also across tiles.
#include "kernels/attention/attention_kernels.cuh"
#include "kernels/attention/online_softmax.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/train_attention/self_attention_kernels.cuh"

namespace hark::cuda {

// Kernels for heads of up to D channels. Those from args.d are zeros in shared memory.
template <int D>
struct ForwardShape {
    static constexpr int kQueries = 128, kGroups = 2;  // per tile; warpgroups per pair
    static constexpr int kRow = 64;                    // channels per row of shared memory
    static constexpr int kD = D;
    static constexpr int kParts = D > kRow ? 2 : 1;
    static constexpr int kColumns = kParts * kRow;
    static constexpr int kPairs = D > kRow ? 1 : 2;    // per block
    static constexpr int kKeys = D > kRow ? 128 : 64;  // per step
    static constexpr int kBuffers = D > kRow ? 2 : 4;
    static constexpr int kThreads = 128 * (kPairs * kGroups + 1);
    static constexpr int kRegisters = D > kRow ? 240 : 112;
    // Steps of the last warpgroup after the diagonal of group `group`.
    __host__ __device__ static constexpr int later_steps(int group) {
        return (kGroups - 1 - group) * 64 / kKeys;
    }
};

namespace {

using namespace hopper;
using Half = __nv_bfloat16;

constexpr int kQueries = ForwardShape<64>::kQueries, kRow = ForwardShape<64>::kRow;
[[maybe_unused]] constexpr int kGroups = ForwardShape<64>::kGroups, kCopyRegisters = 24;

// A tile of queries, and its steps of keys. No steps: after the last tile.
struct Work {
    int h, query;    // the first of the tile
    int key, steps;  // the first key; steps of the last warpgroup
};

template <int N>
struct Barriers {
    uint64_t full[N], empty[N];
};

// Shared memory of a pair.
template <class S>
struct alignas(1024) Shared {
    Half q[2][S::kParts][kQueries][kRow];
    Half keys[S::kBuffers][S::kParts][S::kKeys][kRow];
    Half values[S::kBuffers][S::kParts][S::kKeys][kRow];
    Work work[2];  // of the queries in q
    Barriers<2> for_q;
    Barriers<S::kBuffers> for_keys, for_values;
};

struct Args : SelfAttentionArgs {
    int* taken;  // number of tiles taken, initially 0
    float scale_log2;
};

struct Maps {
    CUtensorMap queries, keys;
};

// One thread: takes tiles, those of the last rows first, and starts all copies.
template <class S>
__device__ void copy_tiles(Shared<S>& shared, const Maps& maps, const Args& args) {
    constexpr int kKeys = S::kKeys;
    const int tiles = (args.rows + kQueries - 1) / kQueries;
    const int group = args.heads / args.kv_heads;
    Place<2> q;
    Place<S::kBuffers> place;
    for (;; q.advance()) {
        const int index = atomicAdd(args.taken, 1);
        const int h = index % args.heads, query = (tiles - 1 - index / args.heads) * kQueries;
        uint64_t& full = shared.for_q.full[q.at];
        wait(shared.for_q.empty[q.at], q.parity ^ 1);
        if (query < 0) {
            shared.work[q.at].steps = 0;
            return arrive(full);
        }
        const int key = args.first[query] / kKeys * kKeys;
        const int steps = (query - key + kQueries) / kKeys;
        shared.work[q.at] = {h, query, key, steps};
        arrive_expecting(full, sizeof shared.q[0]);
        for (int part = 0; part < S::kParts; ++part)
            copy_box(shared.q[q.at][part], maps.queries, full, part * kRow, h, query);
        for (int step = 0; step < steps; ++step, place.advance()) {
            const auto copy = [&](auto& to, Barriers<S::kBuffers>& barriers, int head) {
                wait(barriers.empty[place.at], place.parity ^ 1);
                arrive_expecting(barriers.full[place.at], sizeof to[0]);
                for (int part = 0; part < S::kParts; ++part)
                    copy_box(to[place.at][part], maps.keys, barriers.full[place.at], part * kRow,
                             head, key + step * kKeys);
            };
            copy(shared.keys, shared.for_keys, args.heads + h / group);
            copy(shared.values, shared.for_values, args.heads + args.kv_heads + h / group);
        }
    }
}

// A warpgroup with 64 queries of every tile. The steps of all tiles form one chain: the first
// scores of a tile are computed while the last values of the previous tile are multiplied. A thread
// has two queries, lane / 4 and lane / 4 + 8 of its warp's 16.
template <class S>
class Warpgroup {
  public:
    __device__ Warpgroup(Shared<S>& shared, const Args& args, int group)
        : shared_(shared),
          args_(args),
          group_(group),
          row_(group * 64 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4) {}

    __device__ void run() {
        if (!open()) return;
        clear();
        start_scores();
        wait_products<0>();
        finish_scores();
        round_scores();
        for (;;) {
            const int old = q_.at;
            const bool last = ++step_ == steps_;
            if (last) {
                end_sums();
                // Skips the keys of later warpgroups' diagonals.
                for (int i = 0; i < S::later_steps(group_); ++i) skip(shared_.for_keys, k_);
                q_.advance();
                if (!open()) break;
            }
            start_scores();
            start_values();
            wait_products<1>();
            finish_scores();
            finish_values();
            if (last) {
                close(old);
                clear();
            } else {
#pragma unroll
                for (int i = 0; i < S::kColumns / 2; ++i) acc_[i] *= kept_[i / 2 % 2];
            }
            round_scores();
        }
        start_values();
        finish_values();
        close(q_.at ^ 1);
    }

  private:
    static constexpr int kKeys = S::kKeys, kBuffers = S::kBuffers;

    // Each warp reports by itself that it no longer needs a buffer.
    __device__ void done(uint64_t& empty) const {
        if (threadIdx.x % 32 == 0) arrive(empty);
    }

    __device__ void skip(Barriers<kBuffers>& barriers, Place<kBuffers>& at) const {
        wait(barriers.full[at.at], at.parity);
        done(barriers.empty[at.at]);
        at.advance();
    }

    // Waits for the queries of the next tile and its first keys; false after the last tile.
    __device__ bool open() {
        wait(shared_.for_q.full[q_.at], q_.parity);
        const Work& work = shared_.work[q_.at];
        if (work.steps == 0) return false;
        step_ = 0;
        steps_ = work.steps - S::later_steps(group_);
        key_ = work.key;
        query_ = work.query + row_;
        const int end = args_.rows - 1;
        latest_ = args_.first[min(work.query + group_ * 64 + 63, end)];
        softmax_ = {};
        wait(shared_.for_keys.full[k_.at], k_.parity);
        return true;
    }

    // Called after a tile's last values.
    __device__ void close(int old) {
        write_rows(shared_.work[old]);
        __syncwarp();
        done(shared_.for_q.empty[old]);
        for (int i = 0; i < S::later_steps(group_); ++i) skip(shared_.for_values, v_);
    }

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < S::kColumns / 2; ++i) acc_[i] = 0;
    }

    // Starts scores = q keys^T.
    __device__ void start_scores() {
        const uint64_t q = factor(shared_.q[q_.at][0][group_ * 64]);
        const uint64_t keys = factor(shared_.keys[k_.at]);
        fence_products();
#pragma unroll
        for (int k = 0; k < S::kD / 16; ++k) {
            const uint32_t within = k % 4 * 32, part = k / 4 * 128;
            multiply(Half{}, scores_, moved(q, within + part * kQueries),
                     moved(keys, within + part * kKeys), k > 0);
        }
        commit_products();
    }

    // Starts acc += p values.
    __device__ void start_values() {
        wait(shared_.for_values.full[v_.at], v_.parity);
        const uint64_t values = factor(shared_.values[v_.at], kKeys * 128);
        fence_products();
#pragma unroll
        for (int k = 0; k < kKeys / 16; ++k)
            multiply(Half{}, acc_, p_[k], moved(values, k * 16 * 128));
        commit_products();
    }

    // Called after the wait for the scores: the softmax. Then waits for the next keys; this also
    // keeps the compiler from waiting for the values before the softmax.
    __device__ void finish_scores() {
        pin(scores_);
        done(shared_.for_keys.empty[k_.at]);
        k_.advance();
        if (step_ + 1 == steps_) mask_later();
        if (key_ < latest_) mask_before();
        key_ += kKeys;
        soften(scores_, softmax_, kept_, args_.scale_log2);
        pin(scores_);
        if (step_ + 1 < steps_) wait(shared_.for_keys.full[k_.at], k_.parity);
    }

    // Scores of keys that a query does not see become -infinity: later keys, and those of earlier
    // sequences.
    __device__ void mask_later() {
        const int later = query_ - key_ - threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < kKeys / 2; ++i)
            scores_[i] = i / 4 * 8 + i % 2 - i / 2 % 2 * 8 > later ? -INFINITY : scores_[i];
    }
    __device__ void mask_before() {
        const int key = key_ + threadIdx.x % 4 * 2, end = args_.rows - 1;
        const int from[2] = {args_.first[min(query_, end)], args_.first[min(query_ + 8, end)]};
#pragma unroll
        for (int i = 0; i < kKeys / 2; ++i)
            scores_[i] = key + i / 4 * 8 + i % 2 < from[i / 2 % 2] ? -INFINITY : scores_[i];
    }

    // Rounds p for use as the left operand: the scores already have an operand's layout.
    __device__ void round_scores() {
#pragma unroll
        for (int i = 0; i < kKeys / 4; ++i)
            p_[i / 4][i % 4] = pack(Half{}, scores_[2 * i], scores_[2 * i + 1]);
    }

    __device__ void finish_values() {
        wait_products<0>();
        pin(acc_);
        pin(scores_);
        done(shared_.for_values.empty[v_.at]);
        v_.advance();
    }

    // Called after a tile's last scores: the factor for the sums of values, and lse.
    __device__ void end_sums() {
        const Work& work = shared_.work[q_.at];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float sum = softmax_.sums[half];
            for (int step = 1; step <= 2; step *= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
            factors_[half] = 1 / sum;
            const int row = query_ + half * 8;
            if (threadIdx.x % 4 == 0 && row < args_.rows)
                args_.lse[int64_t{row} * args_.heads + work.h] =
                    (softmax_.largest[half] * args_.scale_log2 + log2f(sum)) *
                    0.693147180559945309f;
        }
    }

    __device__ void write_rows(const Work& work) const {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = work.query + row_ + half * 8;
            if (row >= args_.rows) continue;
            Half* to =
                static_cast<Half*>(args_.out) + args_.place(row, work.h) + threadIdx.x % 4 * 2;
#pragma unroll
            for (int c = 0; c < S::kD / 8; ++c)
                if (c * 8 < args_.d)
                    *reinterpret_cast<uint32_t*>(to + c * 8) =
                        pack(Half{}, acc_[4 * c + 2 * half] * factors_[half],
                             acc_[4 * c + 2 * half + 1] * factors_[half]);
        }
    }

    Shared<S>& shared_;
    const Args& args_;
    const int group_, row_;  // row_: this thread's first query of the tile
    Place<2> q_;
    Place<kBuffers> k_, v_;
    float acc_[S::kColumns / 2], scores_[kKeys / 2];
    OnlineSoftmax softmax_;
    float kept_[2], factors_[2];
    uint32_t p_[kKeys / 16][4];
    int step_ = 0, steps_ = 0, key_, query_;  // key_: the step's first; query_: this thread's first
    int latest_;                              // the first key of the warpgroup's last query
};

template <int N>
__device__ void set_up(Barriers<N>& barriers) {
    for (int i = 0; i < N; ++i) {
        init(barriers.full[i], 1);
        init(barriers.empty[i], 4 * kGroups);  // warps
    }
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    forward_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Args args) {
#if HARK_HOPPER_CODE
    extern __shared__ unsigned char memory[];
    auto* pairs =
        reinterpret_cast<Shared<S>*>(memory + (1024 - shared_address(memory) % 1024) % 1024);
    if (threadIdx.x < S::kPairs) {
        set_up(pairs[threadIdx.x].for_q);
        set_up(pairs[threadIdx.x].for_keys);
        set_up(pairs[threadIdx.x].for_values);
        fence_init();
    }
    __syncthreads();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    if (warp < 4) {
        give_registers<kCopyRegisters>();
        if (warp < S::kPairs && threadIdx.x % 32 == 0) copy_tiles(pairs[warp], maps, args);
    } else {
        take_registers<S::kRegisters>();
        const int group = warp / 4 - 1;
        Warpgroup<S>(pairs[group / kGroups], args, group % kGroups).run();
    }
#endif
}

template <int D>
bool forward_of(Context& ctx, const SelfAttentionArgs& given) {
    using S = ForwardShape<D>;
    const auto kernel = forward_kernel<S>;
    if (!has_hopper_code(reinterpret_cast<const void*>(kernel))) return false;
    constexpr int kBytes = S::kPairs * sizeof(Shared<S>) + 1024;  // 1024: to align it
    static_assert(kBytes <= 227 * 1024);
    const Arena::Scope scope(ctx.arena);
    Args args{given, ctx.arena.tensor(Dtype::i32, {1}).as<int32_t>(),
              given.scale * static_cast<float>(M_LOG2E)};
    CUDA_CHECK(cudaMemsetAsync(args.taken, 0, sizeof(int), stream_of(ctx)));
    const auto map = [&](uint32_t rows) {
        return head_map(args, args.qkv, args.heads + 2 * args.kv_heads, rows);
    };
    const Maps maps = {map(kQueries), map(S::kKeys)};
    const int64_t tiles = ceil_div(args.rows, kQueries) * args.heads;
    const auto blocks =
        static_cast<unsigned>(std::min<int64_t>(ceil_div(tiles, S::kPairs), multiprocessors()));
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    kernel<<<blocks, S::kThreads, kBytes, stream_of(ctx)>>>(maps, args);
    CUDA_CHECK(cudaGetLastError());
    return true;
}

}  // namespace

CUtensorMap head_map(const SelfAttentionArgs& args, const void* data, int heads, uint32_t rows) {
    const auto d = static_cast<uint64_t>(args.d), row = static_cast<uint64_t>(heads) * d;
    return tile_map(Dtype::bf16, data,
                    {d, static_cast<uint64_t>(heads), static_cast<uint64_t>(args.rows)},
                    {d * sizeof(Half), row * sizeof(Half)}, {kRow, 1, rows});
}

bool self_attention_by_wgmma(Context& ctx, const SelfAttentionArgs& args) {
    return by_head_size(args.d, [&](auto d) { return forward_of<d>(ctx, args); });
}

}  // namespace hark::cuda
