// The gradient of self-attention on Hopper, the products. Two warpgroups have half of an item's
// keys each, and half of the queries' gradients: of every tile's queries or of the channels. In a
// step they compute the scores and their gradients with keys as rows: these are left operands in
// registers for the gradients of keys and values. For the queries' gradient they go through shared
// memory, from which each warpgroup reads those of both while the next step's are in flight.
#include "kernels/train_attention/self_attention_backward_wgmma.cuh"

namespace hark::cuda {
namespace {

using namespace hopper;
using namespace backward;

// A warpgroup with 64 keys of every item, and half of the queries' gradients.
template <class S>
class BackwardWarpgroup {
  public:
    __device__ BackwardWarpgroup(Shared<S>& shared, const Args& args, int group)
        : shared_(shared),
          args_(args),
          scale_log2_(args.scale * 1.44269504088896341f),
          group_(group),
          warp_(threadIdx.x / 32 % 4),
          lane_(threadIdx.x % 32) {}

    __device__ void run() {
        for (;; item_at_.advance()) {
            wait(shared_.item_full[item_at_.at], item_at_.parity);
            const Item& item = this->item();
            if (item.kv_head < 0) return;
            keys_ = factor(shared_.keys[item_at_.at]);
            values_ = factor(shared_.values[item_at_.at]);
#pragma unroll
            for (int i = 0; i < S::kColumns / 2; ++i) dk_[i] = dv_[i] = 0;
            take<true>();
            const int tiles = item.last - item.keys * S::kSteps + 1;
            for (int left = tiles * args_.group() - 1; left > 0; --left) take<false>();
            finish();
        }
    }

  private:
    static constexpr int kQueries = S::kQueries;

    __device__ const Item& item() const { return shared_.items[item_at_.at]; }

    // Each warp reports by itself that it has written or no longer needs a buffer.
    __device__ void done(uint64_t& barrier) const {
        __syncwarp();
        if (lane_ == 0) arrive(barrier);
    }

    // One tile of queries. Its products for dk and dv are still running at the end; those for dq
    // are started after the next tile's scores.
    template <bool First>
    __device__ void take() {
        const uint64_t q = factor(shared_.q[q_at_.at], kQueries * 128);
        const uint64_t dout = factor(shared_.dout[q_at_.at], kQueries * 128);
        const uint32_t own = group_ * 64 * 128;
        wait(shared_.q_full[q_at_.at], q_at_.parity);
        const Queries& queries = shared_.queries[q_at_.at];
        start_rows(scores_, moved(keys_, own), q);
        start_rows(slopes_, moved(values_, own), dout);
        if constexpr (!First) wait_for_sums();
        wait_products<1>();
        pin(scores_);
        find_probabilities(queries.tile, queries.crossing);
        wait_products<0>();
        pin(slopes_);
        find_slopes();
        if constexpr (!First) start_dq(slopes_at_.at ^ 1, keys_);
        // The first tile's zeros are there before the products start.
        pin(dv_);
        pin(dk_);
        fence_products();
#pragma unroll
        for (int k = 0; k < kQueries / 16; ++k)
            multiply(T{}, dv_, p_[k], moved(dout, k * 16 * 128));
#pragma unroll
        for (int k = 0; k < kQueries / 16; ++k) multiply(T{}, dk_, ds_[k], moved(q, k * 16 * 128));
        commit_products();
        if constexpr (!First) finish_dq<1>(slopes_at_.at ^ 1);
        wait_products<0>();
        pin(dk_);
        pin(dv_);
        last_ = queries.last;
        h_ = queries.h;
        tile_ = queries.tile;
        done(shared_.q_empty[q_at_.at]);
        q_at_.advance();
        slopes_at_.advance();
    }

    // After the last tile: the rest of its products, and the results.
    __device__ void finish() {
        start_dq(slopes_at_.at ^ 1, keys_);
        wait_for_sums();
        const int row = item().keys * kTile + group_ * 64;
        write(args_.part(1, h_), row, dk_, args_.scale);
        write(args_.part(2, h_), row, dv_, 1);
        finish_dq<0>(slopes_at_.at ^ 1);
        done(shared_.item_empty[item_at_.at]);
    }

    // Starts (64 keys, a step's queries) = a b^T.
    __device__ void start_rows(float (&c)[kQueries / 2], uint64_t a, uint64_t b) {
        fence_products();
#pragma unroll
        for (int k = 0; k < S::kD / 16; ++k) {
            const uint32_t within = k % 4 * 32, part = k / 4 * 128;
            multiply(T{}, c, moved(a, within + part * kTile), moved(b, within + part * kQueries),
                     k > 0);
        }
        commit_products();
    }

    // scores become p = 2^(score * scale - lse), 0 for queries that do not see the key.
    __device__ void find_probabilities(int tile, bool crossing) {
        const float* lse2 = shared_.lse2[q_at_.at] + lane_ % 4 * 2;
#pragma unroll
        for (int n = 0; n < kQueries / 8; ++n) {
            const float2 shift = *reinterpret_cast<const float2*>(lse2 + n * 8);
#pragma unroll
            for (int i = 4 * n; i < 4 * n + 4; ++i)
                scores_[i] =
                    exp2_fast(fmaf(scores_[i], scale_log2_, -(i % 2 == 0 ? shift.x : shift.y)));
        }
        const int first_query = tile * kQueries, first_key = item().keys * kTile;
        if (tile / S::kSteps != item().keys && !crossing) return;
        const int key = first_key + group_ * 64 + warp_ * 16 + lane_ / 4;
#pragma unroll
        for (int i = 0; i < kQueries / 4; ++i) {
            const int query = first_query + lane_ % 4 * 2 + i / 2 * 8 + i % 2;
            const int from = crossing ? args_.first[min(query, args_.rows - 1)] : first_key;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float& p = scores_[i / 2 * 4 + half * 2 + i % 2];
                // Bitwise, since && would make branches.
                const int seen = (key + half * 8 <= query) & (key + half * 8 >= from);
                p = seen ? p : 0.0f;
            }
        }
    }

    // slopes become p * (dp - delta). Both are rounded; the slopes are also written to shared
    // memory.
    __device__ void find_slopes() {
        const float* delta = shared_.delta[q_at_.at] + lane_ % 4 * 2;
#pragma unroll
        for (int n = 0; n < kQueries / 8; ++n) {
            const float2 mean = *reinterpret_cast<const float2*>(delta + n * 8);
#pragma unroll
            for (int i = 4 * n; i < 4 * n + 4; ++i)
                slopes_[i] = scores_[i] * (slopes_[i] - (i % 2 == 0 ? mean.x : mean.y));
        }
#pragma unroll
        for (int i = 0; i < kQueries / 4; ++i) {
            p_[i / 4][i % 4] = pack(T{}, scores_[2 * i], scores_[2 * i + 1]);
            ds_[i / 4][i % 4] = pack(T{}, slopes_[2 * i], slopes_[2 * i + 1]);
        }
        wait(shared_.slopes_empty[slopes_at_.at], slopes_at_.parity ^ 1);
        // 8 queries by 8 keys of a matrix, in the order of a left operand's registers.
        const int matrix = lane_ / 8, query = matrix / 2 * 8 + lane_ % 8;
        const int chunk = (warp_ * 2 + matrix % 2) ^ (lane_ % 8);  // the swizzle
        const uint32_t to =
            shared_address(shared_.slopes[slopes_at_.at][group_]) + query * 128 + chunk * 16;
#pragma unroll
        for (int k = 0; k < kQueries / 16; ++k) store_transposed(to + k * 16 * 128, ds_[k]);
        fence_stores();
        done(shared_.slopes_full[slopes_at_.at]);
    }

    // Starts dq (64 queries, 64 channels) = slopes keys, once both warpgroups' slopes are there.
    __device__ void start_dq(int buffer, uint64_t keys) {
        wait(shared_.slopes_full[buffer],
             slopes_at_.at == 0 ? slopes_at_.parity ^ 1 : slopes_at_.parity);
        const uint64_t slopes = factor(shared_.slopes[buffer][0][kQueries > 64 ? group_ * 64 : 0]);
        const uint32_t part = kQueries > 64 ? 0 : group_ * kTile * 128;
        fence_products();
#pragma unroll
        for (int k = 0; k < kTile / 16; ++k)
            multiply_across(T{}, dq_, moved(slopes, k / 4 * kQueries * 128 + k % 4 * 32),
                            moved(keys, part + k * 16 * 128), k > 0);
        commit_products();
    }

    // If the previous tile of queries is the item's last: waits until the others' sums are there.
    __device__ void wait_for_sums() const {
        if (last_)
            wait_for_items(args_.counts + 1 + args_.half_tile<S>(h_, tile_, group_),
                           items_before<S>(item(), tile_));
    }

    // Waits for all products except the latest `Later` groups. The previous tile's dq goes to the
    // thread that adds it to the sums of the items before; the last item's dq takes the sums and is
    // written.
    template <int Later>
    __device__ void finish_dq(int buffer) {
        float4 sums[8] = {};
        const int thread = threadIdx.x % kGroup;
        if (last_ && items_before<S>(item(), tile_) > 0) {
            const int64_t place = args_.half_tile<S>(h_, tile_, group_);
            const auto* from =
                reinterpret_cast<const float4*>(args_.sums + place * (64 * 64)) + thread;
#pragma unroll
            for (int i = 0; i < 8; ++i) sums[i] = __ldcg(from + i * kGroup);
        }
        wait_products<Later>();
        pin(dq_);
        done(shared_.slopes_empty[buffer]);
        if (last_) return write_dq(sums);
        wait(shared_.dq_empty[group_], dq_parity_ ^ 1);
        dq_parity_ ^= 1;
        float4* to = reinterpret_cast<float4*>(shared_.dq[group_]) + thread;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            to[i * kGroup] = {dq_[4 * i], dq_[4 * i + 1], dq_[4 * i + 2], dq_[4 * i + 3]};
        fence_stores();
        done(shared_.dq_full[group_]);
    }

    __device__ void write_dq(const float4 (&sums)[8]) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            dq_[4 * i] += sums[i].x;
            dq_[4 * i + 1] += sums[i].y;
            dq_[4 * i + 2] += sums[i].z;
            dq_[4 * i + 3] += sums[i].w;
        }
        const bool of_queries = kQueries > 64;
        write(args_.part(0, h_), tile_ * kQueries + (of_queries ? group_ * 64 : 0), dq_,
              args_.scale, of_queries ? 0 : group_ * 64);
    }

    // Writes gradients of 64 rows of a head, which begins at `part` of a row: the sums' channels
    // begin at `channel`.
    template <int N>
    __device__ void write(int part, int first_row, const float (&sums)[N], float factor,
                          int channel = 0) {
        const int row = first_row + warp_ * 16 + lane_ / 4;
        const int64_t stride = args_.width();
        T* to = static_cast<T*>(args_.dqkv) + row * stride + part + channel + lane_ % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (row + half * 8 >= args_.rows) continue;
#pragma unroll
            for (int n = 0; n < N / 4; ++n)
                if (channel + n * 8 < args_.d)
                    *reinterpret_cast<uint32_t*>(to + half * 8 * stride + n * 8) = pack(
                        T{}, sums[4 * n + 2 * half] * factor, sums[4 * n + 2 * half + 1] * factor);
        }
    }

    Shared<S>& shared_;
    const Args& args_;
    const float scale_log2_;
    const int group_, warp_, lane_;
    uint64_t keys_, values_;
    Place<S::kItems> item_at_;
    Place<2> q_at_, slopes_at_;
    uint32_t dq_parity_ = 0;
    // Of the latest step: its head, its tile of queries, and whether no item after this one adds to
    // their gradients.
    int h_ = 0, tile_ = 0;
    bool last_ = false;
    float scores_[kQueries / 2], slopes_[kQueries / 2], dq_[32];
    float dk_[S::kColumns / 2], dv_[S::kColumns / 2];
    uint32_t p_[kQueries / 16][4], ds_[kQueries / 16][4];
};

template <class S>
__global__ void __launch_bounds__(kThreads, 1)
    backward_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Args args) {
#if HARK_HOPPER_CODE
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& shared = *reinterpret_cast<Shared<S>*>(memory);
    if (threadIdx.x == 0) {
        if (shared_address(memory) % 1024 != 0) __trap();  // the swizzle needs it
        for (int i = 0; i < S::kItems; ++i) {
            init(shared.item_full[i], 1);
            init(shared.item_empty[i], 8 + 2);
        }
        for (int i = 0; i < 2; ++i) {
            init(shared.q_full[i], 1);
            init(shared.q_empty[i], 8);
            init(shared.slopes_full[i], 8);
            init(shared.slopes_empty[i], 8);
            init(shared.dq_full[i], 4);
            init(shared.dq_empty[i], 1);
        }
        fence_init();
    }
    __syncthreads();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    if (warp < 4) {
        give_registers<kCopyRegisters>();
        if (threadIdx.x == 0) copy_tiles(shared, maps, args);
        if (warp >= 2 && threadIdx.x % 32 == 0) add_dq(shared, args, warp - 2);
    } else {
        take_registers<kRegisters>();
        BackwardWarpgroup<S>(shared, args, warp / 4 - 1).run();
    }
#endif
}

template <int D>
bool backward_of(Context& ctx, const SelfAttentionBackwardArgs& given) {
    using S = Shape<D>;
    const auto kernel = backward_kernel<S>;
    if (!has_hopper_code(reinterpret_cast<const void*>(kernel))) return false;
    constexpr int kBytes = sizeof(Shared<S>);
    static_assert(kBytes <= 227 * 1024);
    const Arena::Scope scope(ctx.arena);
    Args args{given, nullptr, nullptr};
    const int64_t half_tiles = int64_t{args.heads} * (args.padded / S::kQueries) * 2;
    args.sums = ctx.arena.tensor(Dtype::f32, {half_tiles, 64 * 64}).as<float>();
    const Tensor counts = ctx.arena.tensor(Dtype::i32, {1 + half_tiles});
    args.counts = counts.as<int32_t>();
    CUDA_CHECK(cudaMemsetAsync(counts.data, 0, counts.bytes(), stream_of(ctx)));
    const int all_heads = args.heads + 2 * args.kv_heads;
    const Maps maps = {head_map(args, args.qkv, all_heads, kTile),
                       head_map(args, args.qkv, all_heads, S::kQueries),
                       head_map(args, args.dout, args.heads, S::kQueries)};
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    kernel<<<static_cast<unsigned>(multiprocessors()), kThreads, kBytes, stream_of(ctx)>>>(maps,
                                                                                           args);
    CUDA_CHECK(cudaGetLastError());
    return true;
}

}  // namespace

bool self_attention_backward_by_wgmma(Context& ctx, const SelfAttentionBackwardArgs& args) {
    return by_head_size(args.d, [&](auto d) { return backward_of<d>(ctx, args); });
}

}  // namespace hark::cuda
