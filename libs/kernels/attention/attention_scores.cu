// attention_scores on the GPU, in f32 arithmetic: writing the scores takes the time.
#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kScoresThreads = 256;
constexpr int kKeys = 64;      // per block, side by side
constexpr int kScoresChannels = 64;  // in shared memory at a time
constexpr int kDown = kScoresThreads / kKeys;
constexpr int kMostQueries = 8;  // per thread
constexpr int kMostHeads = 32;   // per launch

struct Scores {
    float* out;
    const void* q;
    Dtype q_type;
    const int *query_start, *slot, *length;
    int64_t rows, frames, capacity, slots, q_stride;
    int d, kv_heads, count;
    float scale;
    bool packed;  // keys can be read four channels at a time
    int heads[kMostHeads];
};

// to (kKeys, kScoresChannels + 4) = channels [c, c + kScoresChannels) of the keys [key, frames),
// then zeros. With this row length eight neighbours read four channels each from 32 different
// banks.
template <class T>
__device__ void load_keys(float (*to)[kScoresChannels + 4], const T* from, const Scores& args,
                          int key, int c) {
    constexpr int kPacks = kScoresChannels / 4;
    for (int i = threadIdx.x; i < kKeys * kPacks; i += kScoresThreads) {
        const int row = i / kPacks, column = i % kPacks * 4;
        const T* at = from + int64_t{key + row} * args.d + c + column;
        Pack<float, 4> values{};
        if (key + row < args.frames && args.packed) {
            if (c + column < args.d) values = convert_pack<float>(load_pack<4>(at));
        } else if (key + row < args.frames) {
            for (int v = 0; v < 4; ++v)
                if (c + column + v < args.d) values.values[v] = to_f32(at[v]);
        }
        store_pack(&to[row][column], values);
    }
}

// Block (keys, queries, head and b): 64 keys by kDown * R queries. One thread sums a score over the
// channels in order, so its bits depend on nothing else. A sequence whose slot or length is out of
// range gets NaN.
template <class T, int R>
__global__ void __launch_bounds__(kScoresThreads) scores_kernel(Scores args, const T* keys) {
    __shared__ __align__(16) float ks[kKeys][kScoresChannels + 4], qs[kDown * R][kScoresChannels];
    const int i = blockIdx.z % args.count, b = blockIdx.z / args.count;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int query = blockIdx.y * kDown * R, key = blockIdx.x * kKeys;
    if (query >= n) return;
    const int slot = args.slot[b], head = args.heads[i];
    const bool known = 0 <= slot && slot < args.slots && args.length[b] >= args.frames &&
                       args.length[b] <= args.capacity;
    const T* from =
        keys + (int64_t{known ? slot : 0} * args.kv_heads + head) * args.capacity * args.d;
    const int column = threadIdx.x % kKeys, down = threadIdx.x / kKeys * R;
    float sums[R] = {};
    for (int c = 0; c < args.d; c += kScoresChannels) {
        __syncthreads();
        load_keys(ks, from, args, key, c);
        for (int e = threadIdx.x; e < kDown * R * kScoresChannels; e += kScoresThreads) {
            const int row = query + e / kScoresChannels, at = c + e % kScoresChannels;
            const int64_t place = (start + row) * args.q_stride + int64_t{head} * args.d + at;
            qs[e / kScoresChannels][e % kScoresChannels] =
                row < n && at < args.d ? load_any(args.q, args.q_type, place) : 0.0f;
        }
        __syncthreads();
        for (int at = 0; at < kScoresChannels && c + at < args.d; at += 4) {
            const Pack<float, 4> k = load_pack<4>(&ks[column][at]);
            for (int r = 0; r < R; ++r) {
                const Pack<float, 4> q = load_pack<4>(&qs[down + r][at]);
                for (int v = 0; v < 4; ++v) sums[r] = fmaf(q.values[v], k.values[v], sums[r]);
            }
        }
    }
    for (int r = 0; r < R; ++r) {
        const int row = query + down + r;
        if (row < n && key + column < args.frames)
            args.out[(i * args.rows + start + row) * args.frames + key + column] =
                known ? sums[r] * args.scale : NAN;
    }
}

}  // namespace

void attention_scores(Context& ctx, Tensor scores, Tensor q, Tensor keys, Tensor heads,
                      const BatchLayout& rows, float scale) {
    enter(ctx, {&scores, &q, &keys, &rows.query_start, &rows.block_table, &rows.length});
    if (scores.size() == 0 || rows.sequences() == 0 || rows.max_queries <= 0) return;
    Scores args{};
    args.q = q.data;
    args.q_type = q.dtype;
    args.query_start = rows.query_start.as<int32_t>();
    args.slot = rows.block_table.as<int32_t>();
    args.length = rows.length.as<int32_t>();
    args.rows = q.rows();
    args.frames = scores.dim(2);
    args.capacity = keys.dim(2);
    args.slots = keys.dim(0);
    args.q_stride = q.dim(-1);
    args.d = static_cast<int>(keys.dim(3));
    args.kv_heads = static_cast<int>(keys.dim(1));
    args.scale = scale;
    args.packed = args.d % 4 == 0 && reinterpret_cast<uintptr_t>(keys.data) % 16 == 0;
    const int queries = rows.max_queries <= kDown ? 1 : kMostQueries;
    const int64_t most = std::min<int64_t>(kMostHeads, kMostGridY / rows.sequences());
    for (int64_t first = 0; first < heads.dim(0); first += most) {
        args.count = static_cast<int>(std::min(most, heads.dim(0) - first));
        std::copy_n(heads.as<int32_t>() + first, args.count, args.heads);
        args.out = scores.as<float>() + first * args.rows * args.frames;
        const dim3 grid(static_cast<unsigned>(ceil_div(args.frames, kKeys)),
                        static_cast<unsigned>(ceil_div(rows.max_queries, kDown * queries)),
                        static_cast<unsigned>(args.count * rows.sequences()));
        with_float_type(keys.dtype, [&](auto value) {
            using T = decltype(value);
            const auto kernel = queries == 1 ? scores_kernel<T, 1> : scores_kernel<T, kMostQueries>;
            kernel<<<grid, kScoresThreads, 0, stream_of(ctx)>>>(args,
                                                                static_cast<const T*>(keys.data));
        });
        CUDA_CHECK(cudaGetLastError());
    }
}

}  // namespace hark::cuda
