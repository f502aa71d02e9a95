// cross_entropy on the GPU: a block a row, whose logits stay in shared memory until their gradient
// is written.
#include <cuda_pipeline.h>

#include "kernels/column_sums.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/gradients.cuh"

namespace hark::cuda {
namespace {

constexpr int kThreads = 512;
constexpr size_t kOwnBytes = 1024;  // of shared memory, beside a row
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

// The whole block's, for all of its threads. `totals` is written again two calls later.
__device__ Total block_total(Total of, Total (&totals)[kThreads / 32]) {
    for (int step = 16; step > 0; step /= 2)
        of.add(
            {__shfl_xor_sync(0xffffffff, of.top, step), __shfl_xor_sync(0xffffffff, of.sum, step)});
    if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = of;
    __syncthreads();
    Total all{kLowest, 0};
    for (const Total& total : totals) all.add(total);
    return all;
}

// Those from column c on. What stands behind the vocabulary has no part in the sum.
template <class T, int V>
__device__ Pack<T, V> load_logits(const T* from, int64_t c, int64_t n_vocab) {
    Pack<T, V> values = load_pack<V>(from);
    if (c + V > n_vocab)
        for (int v = 0; v < V; ++v)
            if (c + v >= n_vocab) values.values[v] = from_f32<T>(-INFINITY);
    return values;
}

template <class T, int V>
__device__ void add_logits(Total& total, const Pack<T, V>& values) {
    float largest = to_f32(values.values[0]);
    for (int v = 1; v < V; ++v) largest = fmaxf(largest, to_f32(values.values[v]));
    total.raise(largest * kLog2e);
    for (int v = 0; v < V; ++v)
        total.sum += power_of_2(fmaf(to_f32(values.values[v]), kLog2e, -total.top));
}

// What becomes of a row: its target, and what its gradient is made of.
struct Row {
    int target;
    bool known;
    float wanted;  // the target's logit
    float factor = 0, scale = 0, top = 0;

    template <class T>
    __device__ Row(const CrossEntropy& args, const T* row, int64_t t) {
        target = args.targets[t];
        known = 0 <= target && target < args.n_vocab;
        wanted = known ? to_f32(row[target]) : NAN;
    }
    __device__ void finish(const CrossEntropy& args, const Total& total, int64_t t) {
        const bool none = target == -1;
        factor = none ? 0 : (known ? args.scale : NAN) / total.sum;
        scale = args.scale;
        top = total.top;
        if (threadIdx.x > 0) return;
        args.losses[t] = none ? 0 : kLn2 * (log2f(total.sum) + fmaf(-wanted, kLog2e, total.top));
    }
    template <class T, int V>
    __device__ Pack<T, V> gradient(const Pack<T, V>& logits, int64_t c, int64_t n_vocab) const {
        Pack<T, V> values{};
        if (target == -1) return values;
        for (int v = 0; v < V; ++v) {
            const float power = power_of_2(fmaf(to_f32(logits.values[v]), kLog2e, -top));
            values.values[v] = from_f32<T>(fmaf(power, factor, c + v == target ? -scale : 0.0f));
        }
        if (c + V > n_vocab)
            for (int v = 0; v < V; ++v)
                if (c + v >= n_vocab) values.values[v] = from_f32<T>(0.0f);
        return values;
    }
};

// A row is read once: into shared memory, where the next one comes to the places of which the
// gradient has been written. A thread has the same places of all rows. The last rows are the first,
// since they have just been written and may be in the cache still.
template <class T, int V>
__global__ void __launch_bounds__(kThreads) kept_kernel(CrossEntropy args, T* logits) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Total totals[2][kThreads / 32];
    constexpr int64_t kStep = int64_t{kThreads} * V;
    constexpr int kParts = 4;  // of a row, each waited for on its own
    T* own = reinterpret_cast<T*>(memory) + threadIdx.x * V;
    const int64_t first = int64_t{threadIdx.x} * V, end = (args.n_vocab + V - 1) / V * V;
    const int64_t part_size = (end + kParts * kStep - 1) / (kParts * kStep) * kStep;
    // Calls f(c) for the thread's packs of a part, c from the row's first of them on.
    const auto each = [&](int part, auto f) {
        const int64_t until = min((part + 1) * part_size, end) - first;
        for (int64_t c = part * part_size; c < until; c += kStep) f(c);
    };
    const auto fetch = [&](int64_t t, int64_t c) {
        if (t >= 0) __pipeline_memcpy_async(own + c, logits + t * args.columns + first + c, 16);
    };
    int64_t t = args.rows - 1 - blockIdx.x;
    for (int part = 0; part < kParts; ++part) {
        each(part, [&](int64_t c) { fetch(t, c); });
        __pipeline_commit();
    }
    for (int turn = 0; t >= 0; t -= gridDim.x, turn ^= 1) {
        T* row = logits + t * args.columns;
        Row of(args, row, t);
        Total total{kLowest, 0};
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            __pipeline_wait_prior(kParts - 1 - part);
            each(part, [&](int64_t c) {
                add_logits(total, load_logits<T, V>(own + c, first + c, args.n_vocab));
            });
        }
        of.finish(args, block_total(total, totals[turn]), t);
        for (int part = 0; part < kParts; ++part) {
            each(part, [&](int64_t c) {
                if (args.scale != 0) {
                    const Pack<T, V> values = load_pack<V>(own + c);
                    store_pack(row + first + c, of.gradient(values, first + c, args.n_vocab));
                }
                fetch(t - gridDim.x, c);
            });
            __pipeline_commit();
        }
        if (args.scale == 0) continue;
        for (int64_t c = end + first; c < args.columns; c += kStep)
            store_pack(row + c, Pack<T, V>{});
    }
}

// Rows of any width and alignment, read twice.
template <class T>
__global__ void __launch_bounds__(kThreads) any_kernel(CrossEntropy args, T* logits) {
    __shared__ Total totals[kThreads / 32];
    const int64_t t = args.rows - 1 - blockIdx.x;
    T* row = logits + t * args.columns;
    Row of(args, row, t);
    Total total{kLowest, 0};
#pragma unroll 4
    for (int64_t c = threadIdx.x; c < args.n_vocab; c += kThreads)
        add_logits(total, load_pack<1>(row + c));
    of.finish(args, block_total(total, totals), t);
    if (args.scale == 0) return;
    for (int64_t c = threadIdx.x; c < args.columns; c += kThreads)
        store_pack(row + c, of.gradient(load_pack<1>(row + c), c, args.n_vocab));
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
        auto* data = static_cast<T*>(logits.data);
        const size_t bytes = static_cast<size_t>(columns) * sizeof(T);
        int most = 0;
        CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                          ctx.device_index));
        if (columns % kWidth<T> == 0 && in_16_bytes({data}) && bytes + kOwnBytes <= size_t(most)) {
            const auto kernel = kept_kernel<T, kWidth<T>>;
            CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(bytes)));
            const int64_t blocks = std::min(rows, blocks_at_once(ctx, kernel, kThreads, bytes));
            kernel<<<static_cast<unsigned>(blocks), kThreads, bytes, stream_of(ctx)>>>(args, data);
        } else {
            any_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream_of(ctx)>>>(args, data);
        }
        CUDA_CHECK(cudaGetLastError());
    });
}

}  // namespace hark::cuda
