// cross_entropy on the GPU: a block a row, whose logits are read once and stay in shared memory
// until their gradient is written.
#include "kernels/elementwise.cuh"
#include "kernels/gradients.cuh"

namespace hark::cuda {
namespace {

constexpr int kThreads = 512, kAhead = 4;
constexpr float kLog2e = 1.4426950408889634f, kLn2 = 0.69314718055994531f;
constexpr float kLowest = -3e38f;

struct CrossEntropy {
    float* losses;
    const int* targets;
    int64_t rows, columns, n_vocab;
    float scale;
};

__device__ float power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The sum of 2^(x log2(e) - top), where top is about the largest exponent so far.
struct Total {
    float top, sum;

    __device__ void raise(float to) {
        if (to <= top) return;
        sum *= power_of_2(top - to);
        top = to;
    }
    __device__ void add(const Total& other) {
        const float highest = fmaxf(top, other.top);
        sum = sum * power_of_2(top - highest) + other.sum * power_of_2(other.top - highest);
        top = highest;
    }
};

__device__ Total block_total(Total of) {
    __shared__ Total totals[kThreads / 32];
    for (int step = 16; step > 0; step /= 2)
        of.add(
            {__shfl_xor_sync(0xffffffff, of.top, step), __shfl_xor_sync(0xffffffff, of.sum, step)});
    if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = of;
    __syncthreads();
    Total all{kLowest, 0};
    for (const Total& total : totals) all.add(total);
    return all;
}

// What stands behind the vocabulary has no part in the sum.
template <class T, int V>
__device__ Pack<T, V> load_logits(const T* row, int64_t c, int64_t n_vocab) {
    Pack<T, V> values = load_pack<V>(row + c);
    if (c + V > n_vocab)
        for (int v = 0; v < V; ++v)
            if (c + v >= n_vocab) values.values[v] = from_f32<T>(-INFINITY);
    return values;
}

template <class T, int V>
__device__ void add_logits(Total& total, const Pack<T, V> (&packs)[kAhead]) {
    float largest = -INFINITY;
    for (int a = 0; a < kAhead; ++a)
        for (int v = 0; v < V; ++v) largest = fmaxf(largest, to_f32(packs[a].values[v]));
    total.raise(largest * kLog2e);
    for (int a = 0; a < kAhead; ++a)
        for (int v = 0; v < V; ++v)
            total.sum += power_of_2(fmaf(to_f32(packs[a].values[v]), kLog2e, -total.top));
}

// The rows from the last on, whose logits have just been written and may be in the cache still.
// Where a row does not fit shared memory (kept) it is read again.
template <class T, int V>
__global__ void __launch_bounds__(kThreads, 2)
    cross_entropy_kernel(CrossEntropy args, T* logits, bool kept) {
    extern __shared__ __align__(16) unsigned char memory[];
    T* own = reinterpret_cast<T*>(memory);
    const int64_t t = args.rows - 1 - blockIdx.x;
    T* row = logits + t * args.columns;
    const int target = args.targets[t];
    const int64_t first = int64_t{threadIdx.x} * V;
    constexpr int64_t kStep = int64_t{kThreads} * V;
    if (target == -1) {
        if (threadIdx.x == 0) args.losses[t] = 0;
        if (args.scale == 0) return;
        for (int64_t c = first; c < args.columns; c += kStep) store_pack(row + c, Pack<T, V>{});
        return;
    }
    const bool known = 0 <= target && target < args.n_vocab;
    const float wanted = known ? to_f32(row[target]) : NAN;
    Total total{kLowest, 0};
    for (int64_t c = first; c < args.n_vocab; c += kAhead * kStep) {
        Pack<T, V> packs[kAhead];
        for (int a = 0; a < kAhead; ++a) {
            const int64_t at = c + a * kStep;
            if (at < args.n_vocab) {
                packs[a] = load_logits<T, V>(row, at, args.n_vocab);
            } else {
                for (int v = 0; v < V; ++v) packs[a].values[v] = from_f32<T>(-INFINITY);
            }
        }
        if (kept)
            for (int a = 0; a < kAhead; ++a)
                if (c + a * kStep < args.n_vocab) store_pack(own + c + a * kStep, packs[a]);
        add_logits(total, packs);
    }
    total = block_total(total);
    if (threadIdx.x == 0)
        args.losses[t] = kLn2 * (log2f(total.sum) + fmaf(-wanted, kLog2e, total.top));
    if (args.scale == 0) return;
    const float factor = (known ? args.scale : NAN) / total.sum;
    for (int64_t c = first; c < args.columns; c += kStep) {
        Pack<T, V> values{};
        if (c < args.n_vocab)
            values = kept ? load_pack<V>(own + c) : load_logits<T, V>(row, c, args.n_vocab);
        for (int v = 0; v < V; ++v) {
            const float power = power_of_2(fmaf(to_f32(values.values[v]), kLog2e, -total.top));
            const float hit = c + v == target ? args.scale : 0.0f;
            values.values[v] = from_f32<T>(c + v < args.n_vocab ? fmaf(power, factor, -hit) : 0.0f);
        }
        store_pack(row + c, values);
    }
}

// Whether shared memory holds the rows of two blocks.
bool fits(const Context& ctx, size_t bytes) {
    constexpr size_t kOfTheBlock = 2048;  // the system's, and what is not the row's
    int most = 0, all = 0;
    CUDA_CHECK(
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, ctx.device_index));
    CUDA_CHECK(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                      ctx.device_index));
    bytes += kOfTheBlock;
    return bytes <= static_cast<size_t>(most) && 2 * bytes <= static_cast<size_t>(all);
}

}  // namespace

void cross_entropy(Context& ctx, Tensor losses, Tensor logits, Tensor targets, int64_t n_vocab,
                   float scale) {
    require(logits.rank == 2, "cross_entropy: expected logits (T, V), found ", logits);
    const int64_t rows = logits.dim(0), columns = logits.dim(1);
    require(0 < n_vocab && n_vocab <= columns, "cross_entropy: expected 1 to ", columns,
            " tokens in the vocabulary, found ", n_vocab);
    check_tensor("cross_entropy", "losses", losses, Dtype::f32, {rows});
    check_tensor("cross_entropy", "targets", targets, Dtype::i32, {rows});
    enter(ctx, {&losses, &logits, &targets});
    if (rows == 0) return;
    const CrossEntropy args{
        losses.as<float>(), targets.as<int32_t>(), rows, columns, n_vocab, scale};
    with_activation_type("cross_entropy", logits, [&](auto value) {
        using T = decltype(value);
        const bool packs = columns % kWidth<T> == 0 && in_16_bytes({logits.data});
        const size_t row_bytes = static_cast<size_t>(columns) * sizeof(T);
        const bool kept = scale != 0 && fits(ctx, row_bytes);
        const auto kernel = packs ? cross_entropy_kernel<T, kWidth<T>> : cross_entropy_kernel<T, 1>;
        const size_t shared_bytes = kept ? row_bytes : 0;
        CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_bytes)));
        kernel<<<static_cast<unsigned>(rows), kThreads, shared_bytes, stream_of(ctx)>>>(
            args, static_cast<T*>(logits.data), kept);
        CUDA_CHECK(cudaGetLastError());
    });
}

}  // namespace hark::cuda
