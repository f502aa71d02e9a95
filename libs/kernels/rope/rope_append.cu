// rope_append on the GPU: one block per row and head, of queries, then of keys and values.
#include "kernels/cache/cache_rows.cuh"
#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kAppendThreads = 64;

struct RopeArgs {
    void *keys, *values;
    const int *query_start, *slot, *length, *position;
    const float *frequencies, *q_norm, *k_norm;
    float scale, q_eps, k_eps;
    int64_t slots, capacity, q_width, k_width, v_width;
    int heads, kv_heads, d, half, blocks;  // half: number of frequencies; blocks: per sequence
};

// The sum over the block's two warps.
__device__ float sum_of_block(float x) {
    __shared__ float partial[kAppendThreads / 32];
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
    __syncthreads();
    return partial[0] + partial[1];
}

// The head's values in f32, normed if there are weights.
template <class X>
__device__ void load_head(float* to, const X* from, int d, const float* weights, float eps) {
    float squares = 0;
    for (int c = threadIdx.x; c < d; c += kAppendThreads) {
        to[c] = to_f32(from[c]);
        squares = fmaf(to[c], to[c], squares);
    }
    if (weights == nullptr) return;
    const float factor = rsqrtf(sum_of_block(squares) / d + eps);
    for (int c = threadIdx.x; c < d; c += kAppendThreads) to[c] *= factor * weights[c];
}

// Channel c's turn: the cosine and sine of its angle.
struct Turn {
    float cosine, sine;

    __device__ Turn(const RopeArgs& args, int c, int position) {
        if (c >= 2 * args.half) return;
        const float angle =
            static_cast<float>(position) * args.frequencies[c < args.half ? c : c - args.half];
        sincosf(angle, &sine, &cosine);
        cosine *= args.scale;
        sine *= args.scale;
    }
    // Channel c of the head after the rope.
    __device__ float of(const float* head, int c, int half) const {
        if (c >= 2 * half) return head[c];
        return c < half ? head[c] * cosine - head[c + half] * sine
                        : head[c] * cosine + head[c - half] * sine;
    }
};

// Block (row j of the sequence, query head or kv head after them, b). A place outside the cache is
// not written.
template <class X, class To>
__global__ void __launch_bounds__(kAppendThreads)
    rope_kernel(RopeArgs args, X* q, X* k, const X* v) {
    let_next_start();
    extern __shared__ float head[];
    const int b = blockIdx.z, start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int j = blockIdx.x, d = args.d;
    const int64_t p = args.length[b] - n + j, block = p / args.capacity, place = p % args.capacity;
    const bool is_in_table = p >= 0 && block < args.blocks;
    const int64_t slot = is_in_table ? args.slot[b * args.blocks + block] : -1;
    const int64_t t = start + j;
    const int position = j < n ? args.position[t] : 0;
    const Turn first(args, threadIdx.x, position);
    const Turn second(args, threadIdx.x + kAppendThreads, position);
    wait_for_previous();
    if (j >= n) return;
    const bool is_query = static_cast<int>(blockIdx.y) < args.heads;
    const int h = is_query ? blockIdx.y : blockIdx.y - args.heads;
    X* from = is_query ? q + t * args.q_width + h * d : k + t * args.k_width + h * d;
    load_head(head, from, d, is_query ? args.q_norm : args.k_norm,
              is_query ? args.q_eps : args.k_eps);
    __syncthreads();
    const bool is_place = !is_query && 0 <= slot && slot < args.slots;
    const int64_t at = ((slot * args.kv_heads + h) * args.capacity + place) * d;
    for (int c = threadIdx.x; c < d; c += kAppendThreads) {
        const int pass = c / kAppendThreads;
        const Turn turn = pass == 0 ? first : pass == 1 ? second : Turn(args, c, position);
        const float x = turn.of(head, c, args.half);
        from[c] = from_f32<X>(x);
        if (!is_place) continue;
        static_cast<To*>(args.keys)[at + c] = from_f32<To>(x);
        static_cast<To*>(args.values)[at + c] =
            from_f32<To>(to_f32(v[t * args.v_width + h * d + c]));
    }
}

}  // namespace

void rope_append(Context& ctx, Tensor keys, Tensor values, const Columns& q, const Columns& k,
                 const Columns& v, int64_t heads, Tensor position, const Rope& rope,
                 const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows) {
    enter(ctx,
          {&keys, &values, &q.rows, &k.rows, &v.rows, &position, &rope.frequencies, &q_norm.weight,
           &k_norm.weight, &rows.query_start, &rows.block_table, &rows.length});
    const int64_t kv_heads = keys.dim(1), d = keys.dim(3);
    if (rows.sequences() == 0 || rows.max_queries <= 0 || d == 0) return;
    const auto floats = [](const Tensor& t) { return t ? t.as<float>() : nullptr; };
    const RopeArgs args{keys.data,
                        values.data,
                        rows.query_start.as<int32_t>(),
                        rows.block_table.as<int32_t>(),
                        rows.length.as<int32_t>(),
                        position.as<int32_t>(),
                        floats(rope.frequencies),
                        floats(q_norm.weight),
                        floats(k_norm.weight),
                        rope.scale,
                        q_norm.eps,
                        k_norm.eps,
                        keys.dtype == Dtype::q8_0 ? 0 : keys.dim(0),  // written after the rope
                        keys.dim(2),
                        q.rows.dim(1),
                        k.rows.dim(1),
                        v.rows.dim(1),
                        static_cast<int>(heads),
                        static_cast<int>(kv_heads),
                        static_cast<int>(d),
                        rope.frequencies ? static_cast<int>(rope.frequencies.dim(0)) : 0,
                        static_cast<int>(rows.blocks())};
    const dim3 grid(static_cast<unsigned>(rows.max_queries),
                    static_cast<unsigned>(heads + kv_heads),
                    static_cast<unsigned>(rows.sequences()));
    const Dtype written = keys.dtype == Dtype::q8_0 ? q.rows.dtype : keys.dtype;
    with_float_type(written, [&](auto to_value) {
        with_float_type(q.rows.dtype, [&](auto from_value) {
            using X = decltype(from_value);
            const auto at = [](const Columns& columns) {
                return static_cast<X*>(columns.rows.data) + columns.first;
            };
            launch_early(ctx, rope_kernel<X, decltype(to_value)>, grid, kAppendThreads,
                         static_cast<size_t>(d) * sizeof(float), args, at(q), at(k),
                         static_cast<const X*>(at(v)));
        });
    });
    if (keys.dtype == Dtype::q8_0) append_q8_0(ctx, keys, values, k, v, rows);
}

}  // namespace hark::cuda
