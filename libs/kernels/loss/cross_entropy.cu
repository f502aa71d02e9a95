// cross_entropy on the GPU: one block per row. The logits stay in shared memory until their
// gradient is written.
#include <cuda_pipeline.h>

#include "kernels/cuda/hopper.cuh"
#include "kernels/elementwise/elementwise.cuh"
#include "kernels/linear/column_sums.cuh"

namespace hark::cuda {
namespace {

constexpr int kLossThreads = 512;
constexpr size_t kLossOwnBytes = 512;  // shared memory that is not for a row, at most
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

// The sum of 2^(x log2(e) - top); top is about the largest exponent so far.
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

// The total of the block, for all of its threads. `totals` is written again two calls later.
__device__ Total block_total(Total of, Total (&totals)[kLossThreads / 32]) {
    for (int step = 16; step > 0; step /= 2)
        of.add(
            {__shfl_xor_sync(0xffffffff, of.top, step), __shfl_xor_sync(0xffffffff, of.sum, step)});
    if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = of;
    __syncthreads();
    Total all{kLowest, 0};
    for (const Total& total : totals) all.add(total);
    return all;
}

template <int V>
__device__ float largest_of(const Pack<float, V>& values) {
    float largest = values.values[0];
    for (int v = 1; v < V; ++v) largest = fmaxf(largest, values.values[v]);
    return largest;
}

template <class T, int V>
__device__ void add_logits(Total& total, const Pack<T, V>& logits) {
    const Pack<float, V> values = to_floats(logits);
    total.raise(largest_of(values) * kLog2e);
    for (const float value : values.values)
        total.sum += power_of_2(fmaf(value, kLog2e, -total.top));
}

// A row's target, and the parameters of its gradient.
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
        // An infinite loss makes the norm of the gradients NaN, and the step is skipped.
        factor = none ? 0 : (known && isfinite(wanted) ? args.scale : NAN) / total.sum;
        scale = args.scale;
        top = total.top;
        if (threadIdx.x > 0) return;
        args.losses[t] = none ? 0 : kLn2 * (log2f(total.sum) + fmaf(-wanted, kLog2e, total.top));
    }
    // Adds the logits from column c; all are of the vocabulary or -inf.
    template <class T, int V>
    __device__ Pack<float, V> gradient(const Pack<T, V>& logits, int c) const {
        Pack<float, V> values = to_floats(logits);
        for (float& value : values.values) value = power_of_2(fmaf(value, kLog2e, -top)) * factor;
        if (c <= target && target < c + V)
            for (int v = 0; v < V; ++v)
                if (c + v == target) values.values[v] -= scale;
        return values;
    }
};

// A row is read once, into shared memory; the next row overwrites each place once its gradient is
// stored. A thread has the same places of all rows. Rows are taken from last to first: the last
// ones were just written and may still be cached.
template <class T, int V>
__global__ void __launch_bounds__(kLossThreads, 2) kept_kernel(CrossEntropy args, T* logits) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Total totals[2][kLossThreads / 32];
    constexpr int kStep = kLossThreads * V;
    constexpr int kParts = 4;  // per row, each waited for separately
    T* held = reinterpret_cast<T*>(memory);
    const int columns = static_cast<int>(args.columns), n_vocab = static_cast<int>(args.n_vocab);
    const int first = threadIdx.x * V, end = (n_vocab + V - 1) / V * V;
    const int part_size = (end + kParts * kStep - 1) / (kParts * kStep) * kStep;
    // Calls f(c) for the thread's packs of a part.
    const auto each = [&](int part, auto f) {
        const int until = min((part + 1) * part_size, end);
#pragma unroll 2
        for (int c = part * part_size + first; c < until; c += kStep) f(c);
    };
    int64_t t = args.rows - 1 - blockIdx.x;
    for (int part = 0; part < kParts; ++part) {
        each(part, [&](int c) { __pipeline_memcpy_async(held + c, logits + t * columns + c, 16); });
        __pipeline_commit();
    }
    for (int turn = 0; t >= 0; t -= gridDim.x, turn ^= 1) {
        T* row = logits + t * columns;
        const T* next = t >= gridDim.x ? row - int64_t{gridDim.x} * columns : nullptr;
        Row of(args, row, t);
        Total total{kLowest, 0};
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            __pipeline_wait_prior(kParts - 1 - part);
            // Columns after the vocabulary are not in the sum; their gradient is zero.
            if (part * part_size < end && end <= (part + 1) * part_size &&
                (end - V) % kStep == first)
                for (int c = n_vocab; c < end; ++c) held[c] = from_f32<T>(-INFINITY);
            each(part, [&](int c) { add_logits(total, load_pack<V>(held + c)); });
        }
        of.finish(args, block_total(total, totals[turn]), t);
        for (int part = 0; part < kParts; ++part) {
            each(part, [&](int c) {
                if (args.scale != 0 && of.target == -1)
                    store_pack(row + c, Pack<T, V>{});
                else if (args.scale != 0)
                    store_floats(row + c, of.gradient(load_pack<V>(held + c), c));
                if (next) __pipeline_memcpy_async(held + c, next + c, 16);
            });
            __pipeline_commit();
        }
        if (args.scale == 0) continue;
        for (int c = end + first; c < columns; c += kStep) store_pack(row + c, Pack<T, V>{});
    }
}

// Rows of any width and alignment, read twice.
template <class T>
__global__ void __launch_bounds__(kLossThreads) any_kernel(CrossEntropy args, T* logits) {
    __shared__ Total totals[kLossThreads / 32];
    const int64_t t = args.rows - 1 - blockIdx.x;
    const int columns = static_cast<int>(args.columns), n_vocab = static_cast<int>(args.n_vocab);
    T* row = logits + t * columns;
    Row of(args, row, t);
    Total total{kLowest, 0};
#pragma unroll 4
    for (int c = threadIdx.x; c < n_vocab; c += kLossThreads)
        add_logits(total, load_pack<1>(row + c));
    of.finish(args, block_total(total, totals), t);
    if (args.scale == 0) return;
    for (int c = threadIdx.x; c < columns; c += kLossThreads)
        store_floats(row + c, c < n_vocab && of.target != -1 ? of.gradient(load_pack<1>(row + c), c)
                                                             : Pack<float, 1>{});
}

}  // namespace

void cross_entropy(Context& ctx, Tensor losses, Tensor logits, Tensor targets, int64_t n_vocab,
                   float scale) {
    const int64_t rows = logits.dim(0), columns = logits.dim(1);
    enter(ctx, {&losses, &logits, &targets});
    if (rows == 0) return;
    const CrossEntropy args{
        losses.as<float>(), targets.as<int32_t>(), rows, columns, n_vocab, scale};
    with_activation_type("cross_entropy", logits, [&](auto value) {
        using T = decltype(value);
        auto* data = static_cast<T*>(logits.data);
        const size_t bytes = static_cast<size_t>(columns) * sizeof(T);
        if (columns % kWidth<T> == 0 && in_16_bytes({data}) &&
            bytes + kLossOwnBytes <= size_t(shared_limit())) {
            const auto kernel = kept_kernel<T, kWidth<T>>;
            CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(bytes)));
            const int64_t blocks = std::min(rows, blocks_at_once(ctx, kernel, kLossThreads, bytes));
            kernel<<<static_cast<unsigned>(blocks), kLossThreads, bytes, stream_of(ctx)>>>(args,
                                                                                           data);
        } else {
            any_kernel<<<static_cast<unsigned>(rows), kLossThreads, 0, stream_of(ctx)>>>(args,
                                                                                         data);
        }
        CUDA_CHECK(cudaGetLastError());
    });
}

}  // namespace hark::cuda
