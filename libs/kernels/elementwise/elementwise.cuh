// Kernels over all values of a tensor or of several alike, 16 bytes of each at a time.
#pragma once

#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {

// Calls f with a value of x's type: activations or their gradient.
template <class F>
void with_activation_type(const char* op, const Tensor& x, F&& f) {
    if (x.dtype == Dtype::f32) return f(float{});
    if (x.dtype == Dtype::bf16) return f(__nv_bfloat16{});
    fail(op, ": expected activations f32 or bf16 on the GPU, found ", x);
}

inline bool in_16_bytes(std::initializer_list<const void*> pointers) {
    return in_packs(0, pointers);
}

template <class T>
inline constexpr int kWidth = 16 / sizeof(T);  // values in 16 bytes

// The values in f32. A bf16 is the upper half of its f32: one instruction per value.
template <int V>
__device__ inline Pack<float, V> to_floats(const Pack<float, V>& values) {
    return values;
}
template <int V>
__device__ inline Pack<float, V> to_floats(const Pack<__nv_bfloat16, V>& values) {
    Pack<float, V> to;
    if constexpr (V == 1) {
        to.values[0] = to_f32(values.values[0]);
    } else {
        const auto* words = reinterpret_cast<const uint32_t*>(&values);
        for (int i = 0; i < V / 2; ++i) {
            to.values[2 * i] = __uint_as_float(words[i] << 16);
            to.values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000);
        }
    }
    return to;
}

// The values as T in one store. The compiler has been seen to split such stores into four or eight.
template <int V>
__device__ inline void store_floats(float* to, const Pack<float, V>& values) {
    store_pack(to, values);
}
template <int V>
__device__ inline void store_floats(__nv_bfloat16* to, const Pack<float, V>& values) {
    if constexpr (V == 8) {
        uint32_t words[4];
        for (int i = 0; i < 4; ++i) {
            const __nv_bfloat162 pair =
                __floats2bfloat162_rn(values.values[2 * i], values.values[2 * i + 1]);
            words[i] = reinterpret_cast<const uint32_t&>(pair);
        }
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]),
                     "r"(words[1]), "r"(words[2]), "r"(words[3])
                     : "memory");
    } else {
        store_pack(to, convert_pack<__nv_bfloat16>(values));
    }
}

template <int V, class Operation>
__global__ void __launch_bounds__(256) each_kernel(Operation operation, int64_t n) {
    constexpr int kPacks = V > 1 ? Operation::kPacks : 1;
    const int64_t first = (int64_t{blockIdx.x} * blockDim.x * kPacks + threadIdx.x) * V;
    const int64_t step = int64_t{blockDim.x} * V;
    if (first + (kPacks - 1) * step + V <= n) return operation.template run<V, kPacks>(first, step);
    for (int p = 0; p < kPacks; ++p)
        for (int v = 0; v < V; ++v) {
            const int64_t i = first + p * step + v;
            if (i < n) operation.template run<1, 1>(i, 0);
        }
}

// Calls operation.run<V, P>(first, step) for all n values: P packs of V values, from `first`,
// `step` values apart. The operation has kValues (V if `aligned` to 16 bytes) and kPacks.
template <class Operation>
void for_each(Context& ctx, const Operation& operation, int64_t n, bool aligned) {
    if (n == 0) return;
    constexpr int64_t kThreads = 256;
    const int64_t at_once = kThreads * (aligned ? Operation::kValues * Operation::kPacks : 1);
    const auto blocks = static_cast<unsigned>(ceil_div(n, at_once));
    const auto kernel =
        aligned ? each_kernel<Operation::kValues, Operation> : each_kernel<1, Operation>;
    kernel<<<blocks, kThreads, 0, stream_of(ctx)>>>(operation, n);
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace hark::cuda
