// Shared by the CUDA sources: error checks, a context's handles, types, loads and activations.
#pragma once

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "core/error.h"
#include "kernels/cuda/ops.cuh"

namespace hark::cuda {

// Throws an Error with the call's text and CUDA's message, OutOfMemory if that is the reason.
[[noreturn]] inline void throw_cuda_error(cudaError_t status, const char* call) {
    cudaGetLastError();  // else the next launch would find it
    const std::string message = concat(call, ": ", cudaGetErrorString(status));
    if (status == cudaErrorMemoryAllocation) throw OutOfMemory(message);
    throw Error(message);
}

#define CUDA_CHECK(call)                                                            \
    do {                                                                            \
        const cudaError_t status_ = (call);                                         \
        if (status_ != cudaSuccess) ::hark::cuda::throw_cuda_error(status_, #call); \
    } while (0)

#define CUBLAS_CHECK(call)                                             \
    do {                                                               \
        const cublasStatus_t status_ = (call);                         \
        ::hark::require(status_ == CUBLAS_STATUS_SUCCESS, #call, ": ", \
                        cublasLtGetStatusString(status_));             \
    } while (0)

// An algorithm that cuBLASLt has chosen for the shape of the weights.
struct ProductPlan {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t w = nullptr, x = nullptr, y = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    double operations = 0;   // multiplications and additions of all calls of gemm()
    bool was_tried = false;  // algorithm is the fastest of several

    ProductPlan() = default;
    ProductPlan(const ProductPlan&) = delete;
    ~ProductPlan();
};

using PlanKey = std::array<int64_t, 12>;

// State of a context on its GPU, in Context::handles.
struct Handles {
    cudaStream_t stream = nullptr;
    cublasLtHandle_t lt = nullptr;
    void* workspace = nullptr;  // cuBLASLt's, kWorkspaceBytes
    bool overlaps = false;      // pdl_launch's kernels may start before the previous one ends
    // Ids that the latest kernel had waited for before it let the next one start, or null: the next
    // one may read them before its own wait, past the L1 cache.
    const int* ready_ids = nullptr;
    std::map<PlanKey, std::unique_ptr<ProductPlan>> plans;

    Handles() = default;
    Handles(const Handles&) = delete;
    ~Handles();
};

inline constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what cuBLAS needs on Hopper

inline Handles& handles_of(const Context& ctx) { return *static_cast<Handles*>(ctx.handles.get()); }
inline cudaStream_t stream_of(const Context& ctx) { return static_cast<cudaStream_t>(ctx.stream); }

// Called at the entry of every operation: its tensors are on the GPU, which becomes the current
// one.
void enter(const Context& ctx, std::initializer_list<const Tensor*> tensors);

// Programmatic dependent launch. A decoder's step is hundreds of small kernels, and usually each
// starts when the previous one has ended and its writes are visible. From compute capability 9.0
// the blocks of such a kernel start as soon as there is room, and wait inside. The kernel
//   - calls pdl_trigger() first, so that the next kernel's blocks can start before it ends, or
//     after its wait, so that the next one may read ready_ids;
//   - calls pdl_wait() in every thread, even one with nothing to do: its own end then
//     implies the end of all kernels before it;
//   - before that writes nothing, and reads only what uploads write (weights, norms, biases, ids,
//     slots, lengths) and what BatchLayout::kv_ready promises: uploads and the embedding are
//     ordered by the stream. A sampler that writes the next step's inputs is the last kernel of
//     a recorded step, and recorded steps are ordered by the stream too;
//   - reads what earlier kernels write through pointers without __restrict__: the compiler might
//     move loads of __restrict__ pointers before the wait.
__device__ inline void pdl_trigger() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Returns when the previous kernels have ended and their writes are visible.
__device__ inline void pdl_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Prefetches the 128 bytes around `from` to the L2 cache. Later writes to them reach it too.
__device__ inline void prefetch(const void* from) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

// Starts a kernel that follows the rules above; the kernels before and after it may be any.
template <class... Parameters, class... Arguments>
void pdl_launch(Context& ctx, void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                size_t shared_bytes, Arguments&&... arguments) {
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream_of(ctx);
    config.attrs = &early;
    config.numAttrs = handles_of(ctx).overlaps ? 1 : 0;
    handles_of(ctx).ready_ids = nullptr;
    CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline bool is_16_bit(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; }

// Calls f with a value of the CUDA type of `dtype`, one of the three float types.
template <class F>
void with_float_type(Dtype dtype, F&& f) {
    switch (dtype) {
        case Dtype::f32:
            return f(float{});
        case Dtype::f16:
            return f(__half{});
        case Dtype::bf16:
            return f(__nv_bfloat16{});
        default:
            fail("expected f32, f16 or bf16 on the GPU, found ", name_of(dtype));
    }
}

__device__ inline float to_f32(float x) { return x; }
__device__ inline float to_f32(__half x) { return __half2float(x); }
__device__ inline float to_f32(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float to_f32(int8_t x) { return static_cast<float>(x); }
// Of a number; NaN is lost.
__device__ inline float to_f32(fp8_t x) {
    const __half_raw moved = {static_cast<uint16_t>((x.bits & 0x80) << 8 | (x.bits & 0x7f) << 7)};
    return __half2float(moved) * 256.0f;
}

template <class T>
__device__ T from_f32(float x);
template <>
__device__ inline float from_f32<float>(float x) {
    return x;
}
template <>
__device__ inline __half from_f32<__half>(float x) {
    return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 from_f32<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

// Element i of memory whose type is known at run time only: for values that are used once.
__device__ inline float load_any(const void* data, Dtype dtype, int64_t i) {
    if (dtype == Dtype::f16) return to_f32(static_cast<const __half*>(data)[i]);
    if (dtype == Dtype::bf16) return to_f32(static_cast<const __nv_bfloat16*>(data)[i]);
    return static_cast<const float*>(data)[i];
}

__device__ inline void store_any(void* data, Dtype dtype, int64_t i, float x) {
    if (dtype == Dtype::f16) {
        static_cast<__half*>(data)[i] = from_f32<__half>(x);
    } else if (dtype == Dtype::bf16) {
        static_cast<__nv_bfloat16*>(data)[i] = from_f32<__nv_bfloat16>(x);
    } else {
        static_cast<float*>(data)[i] = x;
    }
}

// V neighbours of one type, moved in accesses of at most 16 bytes.
template <class T, int V>
struct alignas(V * sizeof(T) < 16 ? V * sizeof(T) : 16) Pack {
    T values[V];
};

template <int V, class T>
__device__ inline Pack<T, V> load_pack(const T* from) {
    return *reinterpret_cast<const Pack<T, V>*>(from);
}

__device__ inline float activate(float x, Activation activation) {
    constexpr float kSqrtHalf = 0.70710678118654752f, kSqrt2OverPi = 0.79788456080286536f;
    if (activation == Activation::gelu) return 0.5f * x * (1.0f + erff(x * kSqrtHalf));
    if (activation == Activation::gelu_tanh)
        return 0.5f * x * (1.0f + tanhf(kSqrt2OverPi * (x + 0.044715f * x * x * x)));
    if (activation == Activation::silu) return x / (1.0f + __expf(-x));
    return x;
}

__device__ inline float warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

__device__ inline float warp_max(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

}  // namespace hark::cuda
