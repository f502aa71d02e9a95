// The gradient of self-attention on Hopper, the products. Two warpgroups have half of an item's
// keys each, and half of every tile of queries. In a step they compute the scores and their
// gradients with keys as rows: these are left operands in registers for the gradients of keys and
// values. For the queries' gradient they go through shared memory, from which each warpgroup reads
// those of both while the next step's are in flight.
#include "kernels/train_attention/self_attention_backward_wgmma.cuh"

namespace hark::cuda {
namespace {

using namespace hopper;
using namespace backward;

// A warpgroup with 64 keys of every item, and half of the queries' gradients.
template <class T>
class BackwardWarpgroup {
  public:
    __device__ BackwardWarpgroup(Shared& shared, const Args& args, int group)
        : shared_(shared),
          args_(args),
          scale_log2_(args.scale * 1.44269504088896341f),
          group_(group),
          warp_(threadIdx.x / 32 % 4),
          lane_(threadIdx.x % 32) {}

    __device__ void run() {
        for (;; item_at_.advance()) {
            wait(shared_.item_full[item_at_.at], item_at_.parity);
            item_ = shared_.items[item_at_.at];
            if (item_.h < 0) return;
            keys_ = factor(shared_.keys[item_at_.at]);
            values_ = factor(shared_.values[item_at_.at]);
#pragma unroll
            for (int i = 0; i < kD / 2; ++i) dk_[i] = dv_[i] = 0;
            take<true>(item_.keys);
            for (int tile = item_.keys + 1; tile <= item_.last; ++tile) take<false>(tile);
            finish();
        }
    }

  private:
    // Each warp reports by itself that it has written or no longer needs a buffer.
    __device__ void done(uint64_t& barrier) const {
        __syncwarp();
        if (lane_ == 0) arrive(barrier);
    }

    // One tile of queries. Its products for dk and dv are still running at the end; those for dq
    // are started after the next tile's scores.
    template <bool First>
    __device__ void take(int tile) {
        const uint64_t q = factor(shared_.q[q_at_.at]), dout = factor(shared_.dout[q_at_.at]);
        const uint32_t own = group_ * 64 * 128;
        wait(shared_.q_full[q_at_.at], q_at_.parity);
        const Queries queries = shared_.queries[q_at_.at];
        start_rows(scores_, moved(keys_, own), q);
        start_rows(slopes_, moved(values_, own), dout);
        if constexpr (!First) wait_for_sums(tile - 1);
        wait_products<1>();
        pin(scores_);
        find_probabilities(tile, queries.crossing);
        wait_products<0>();
        pin(slopes_);
        find_slopes();
        if constexpr (!First) start_dq(slopes_at_.at ^ 1, keys_);
        // The first tile's zeros are there before the products start.
        pin(dv_);
        pin(dk_);
        fence_products();
#pragma unroll
        for (int k = 0; k < kTile / 16; ++k) multiply(T{}, dv_, p_[k], moved(dout, k * 16 * 128));
#pragma unroll
        for (int k = 0; k < kTile / 16; ++k) multiply(T{}, dk_, ds_[k], moved(q, k * 16 * 128));
        commit_products();
        if constexpr (!First) {
            finish_dq<1>(tile - 1, slopes_at_.at ^ 1);
        }
        wait_products<0>();
        pin(dk_);
        pin(dv_);
        done(shared_.q_empty[q_at_.at]);
        last_ = queries.last;
        q_at_.advance();
        slopes_at_.advance();
    }

    // After the last tile: the rest of its products, and the results.
    __device__ void finish() {
        start_dq(slopes_at_.at ^ 1, keys_);
        wait_for_sums(item_.last);
        write(1, item_.keys, dk_, args_.scale);
        write(2, item_.keys, dv_, 1);
        finish_dq<0>(item_.last, slopes_at_.at ^ 1);
        done(shared_.item_empty[item_at_.at]);
    }

    // Starts (64 keys, 128 queries) = a b^T.
    __device__ void start_rows(float (&c)[kTile / 2], uint64_t a, uint64_t b) {
        fence_products();
#pragma unroll
        for (int k = 0; k < kD / 16; ++k)
            multiply(T{}, c, moved(a, k * 32), moved(b, k * 32), k > 0);
        commit_products();
    }

    // scores become p = 2^(score * scale - lse), 0 for queries that do not see the key.
    __device__ void find_probabilities(int tile, bool crossing) {
        const float* lse2 = shared_.lse2[q_at_.at] + lane_ % 4 * 2;
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n) {
            const float2 shift = *reinterpret_cast<const float2*>(lse2 + n * 8);
#pragma unroll
            for (int i = 4 * n; i < 4 * n + 4; ++i)
                scores_[i] =
                    exp2_fast(fmaf(scores_[i], scale_log2_, -(i % 2 == 0 ? shift.x : shift.y)));
        }
        const int first_query = tile * kTile, first_key = item_.keys * kTile;
        if (tile != item_.keys && !crossing) return;
        const int key = first_key + group_ * 64 + warp_ * 16 + lane_ / 4;
#pragma unroll
        for (int i = 0; i < kTile / 4; ++i) {
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
        for (int n = 0; n < kTile / 8; ++n) {
            const float2 mean = *reinterpret_cast<const float2*>(delta + n * 8);
#pragma unroll
            for (int i = 4 * n; i < 4 * n + 4; ++i)
                slopes_[i] = scores_[i] * (slopes_[i] - (i % 2 == 0 ? mean.x : mean.y));
        }
#pragma unroll
        for (int i = 0; i < kTile / 4; ++i) {
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
        for (int k = 0; k < kTile / 16; ++k) store_transposed(to + k * 16 * 128, ds_[k]);
        fence_stores();
        done(shared_.slopes_full[slopes_at_.at]);
    }

    // Starts dq (64 queries, D) = slopes keys, once both warpgroups' slopes are there.
    __device__ void start_dq(int buffer, uint64_t keys) {
        wait(shared_.slopes_full[buffer],
             slopes_at_.at == 0 ? slopes_at_.parity ^ 1 : slopes_at_.parity);
        const uint64_t slopes = factor(shared_.slopes[buffer][0][group_ * 64]);
        fence_products();
#pragma unroll
        for (int k = 0; k < kTile / 16; ++k)
            multiply_across(T{}, dq_, moved(slopes, k / 4 * kTile * 128 + k % 4 * 32),
                            moved(keys, k * 16 * 128), k > 0);
        commit_products();
    }

    // If the previous tile of queries is the item's last: waits until the others' sums are there.
    __device__ void wait_for_sums(int tile) const {
        if (last_)
            wait_for_items(args_.counts + 1 + args_.half_tile(item_.h, tile, group_),
                           tile - item_.keys);
    }

    // Waits for all products except the latest `Later` groups. dq goes to the thread that adds it
    // to the sums of the items before; the last item's dq takes the sums and is written.
    template <int Later>
    __device__ void finish_dq(int tile, int buffer) {
        float4 sums[kD / 8] = {};
        const int thread = threadIdx.x % kGroup;
        if (last_ && tile > item_.keys) {
            const int64_t place = args_.half_tile(item_.h, tile, group_);
            const auto* from =
                reinterpret_cast<const float4*>(args_.sums + place * (64 * kD)) + thread;
#pragma unroll
            for (int i = 0; i < kD / 8; ++i) sums[i] = __ldcg(from + i * kGroup);
        }
        wait_products<Later>();
        pin(dq_);
        done(shared_.slopes_empty[buffer]);
        if (last_) return write_dq(tile, sums);
        wait(shared_.dq_empty[group_], dq_parity_ ^ 1);
        dq_parity_ ^= 1;
        float4* to = reinterpret_cast<float4*>(shared_.dq[group_]) + thread;
#pragma unroll
        for (int i = 0; i < kD / 8; ++i)
            to[i * kGroup] = {dq_[4 * i], dq_[4 * i + 1], dq_[4 * i + 2], dq_[4 * i + 3]};
        fence_stores();
        done(shared_.dq_full[group_]);
    }

    __device__ void write_dq(int tile, const float4 (&sums)[kD / 8]) {
#pragma unroll
        for (int i = 0; i < kD / 8; ++i) {
            dq_[4 * i] += sums[i].x;
            dq_[4 * i + 1] += sums[i].y;
            dq_[4 * i + 2] += sums[i].z;
            dq_[4 * i + 3] += sums[i].w;
        }
        write(0, tile, dq_, args_.scale);
    }

    // Writes the gradient of this warpgroup's queries, keys or values (0, 1, 2) of a tile.
    __device__ void write(int which, int tile, const float (&sums)[kD / 2], float factor) {
        const int row = tile * kTile + group_ * 64 + warp_ * 16 + lane_ / 4;
        const int64_t stride = 3 * args_.channels();
        T* to =
            static_cast<T*>(args_.dqkv) + row * stride + args_.part(which, item_.h) + lane_ % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (row + half * 8 >= args_.rows) continue;
#pragma unroll
            for (int n = 0; n < kD / 8; ++n)
                *reinterpret_cast<uint32_t*>(to + half * 8 * stride + n * 8) =
                    pack(T{}, sums[4 * n + 2 * half] * factor, sums[4 * n + 2 * half + 1] * factor);
        }
    }

    Shared& shared_;
    const Args& args_;
    const float scale_log2_;
    const int group_, warp_, lane_;
    Item item_;
    uint64_t keys_, values_;
    Place<2> item_at_, q_at_, slopes_at_;
    uint32_t dq_parity_ = 0;
    bool last_ = false;  // of the latest tile: no item after this one adds to its gradients
    float scores_[kTile / 2], slopes_[kTile / 2], dk_[kD / 2], dv_[kD / 2], dq_[kD / 2];
    uint32_t p_[kTile / 16][4], ds_[kTile / 16][4];
};

__global__ void __launch_bounds__(kThreads, 1)
    backward_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Args args) {
#if HARK_HOPPER_CODE
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    if (threadIdx.x == 0) {
        if (shared_address(memory) % 1024 != 0) __trap();  // the swizzle needs it
        for (int i = 0; i < 2; ++i) {
            init(shared.item_full[i], 1);
            init(shared.item_empty[i], 8 + 2);
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
        BackwardWarpgroup<T>(shared, args, warp / 4 - 1).run();
    }
#endif
}

}  // namespace

bool self_attention_backward_by_wgmma(Context& ctx, const SelfAttentionBackwardArgs& given) {
    const auto kernel = backward_kernel;
    if (given.d != kD || given.kv_heads != given.heads) return false;
    if (!has_hopper_code(reinterpret_cast<const void*>(kernel))) return false;
    constexpr int kBytes = sizeof(Shared);
    static_assert(kBytes <= 227 * 1024);
    const Arena::Scope scope(ctx.arena);
    Args args{given, nullptr, nullptr};
    const int64_t half_tiles = int64_t{args.heads} * args.tiles() * 2;
    args.sums = ctx.arena.tensor(Dtype::f32, {half_tiles, 64 * kD}).as<float>();
    const Tensor counts = ctx.arena.tensor(Dtype::i32, {1 + half_tiles});
    args.counts = counts.as<int32_t>();
    CUDA_CHECK(cudaMemsetAsync(counts.data, 0, counts.bytes(), stream_of(ctx)));
    const auto rows = static_cast<uint64_t>(args.rows);
    const auto channels = static_cast<uint64_t>(args.channels());
    const auto map = [&](const void* data, uint64_t columns) {
        return tile_map(Dtype::bf16, data, {columns, rows}, {columns * sizeof(T)}, {kD, kTile});
    };
    const Maps maps = {map(args.qkv, 3 * channels), map(args.dout, channels)};
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    kernel<<<static_cast<unsigned>(multiprocessors()), kThreads, kBytes, stream_of(ctx)>>>(maps,
                                                                                           args);
    CUDA_CHECK(cudaGetLastError());
    return true;
}

}  // namespace hark::cuda
