// cuBLASLt as all products use it: layouts, attributes, and the choice of an algorithm.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda::lt {

inline cudaDataType_t cuda_type(Dtype dtype) {
    if (dtype == Dtype::fp8) return CUDA_R_8F_E4M3;
    return dtype == Dtype::f32 ? CUDA_R_32F : dtype == Dtype::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

// At most 16 bytes, which all tensors of an arena have: the address must not change the algorithm.
inline uint32_t alignment_of(const void* pointer) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    return address == 0 ? 16 : static_cast<uint32_t>(std::min<uintptr_t>(address & -address, 16));
}

// cuBLASLt counts by columns.
inline cublasLtMatrixLayout_t layout(Dtype dtype, int64_t rows, int64_t columns, int64_t stride) {
    cublasLtMatrixLayout_t made = nullptr;
    CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&made, cuda_type(dtype), static_cast<uint64_t>(rows),
                                            static_cast<uint64_t>(columns), stride));
    return made;
}

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t what, const T& value) {
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(operation, what, &value, sizeof value));
}

template <class T>
void set(cublasLtMatmulPreference_t wish, cublasLtMatmulPreferenceAttributes_t what,
         const T& value) {
    CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(wish, what, &value, sizeof value));
}

template <class T>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t what, const T& value) {
    CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(layout, what, &value, sizeof value));
}

// The operands of plan.w, plan.x and plan.y, and the matrix that is added to y, or null.
struct Operands {
    const void *w, *x, *y, *added;
};

// Algorithms, from the one that cuBLASLt expects to be the fastest.
struct Algorithms {
    std::array<cublasLtMatmulAlgo_t, 8> all;
    int count = 0;
};

// Returns up to `most` algorithms, at least one, with sums in one of `reductions`
// (cublasLtReductionScheme_t). Throws Error; `what` describes the product in it.
inline Algorithms algorithms(Handles& handles, const ProductPlan& plan, const Operands& operands,
                             uint32_t reductions, int most, const char* what) {
    cublasLtMatmulPreference_t made = nullptr;
    CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&made));
    const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                          decltype(&cublasLtMatmulPreferenceDestroy)>
        wish(made, cublasLtMatmulPreferenceDestroy);
    set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes});
    set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(operands.w));
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(operands.x));
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(operands.added));
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(operands.y));
    Algorithms algorithms;
    std::array<cublasLtMatmulHeuristicResult_t, 8> found;
    int count = 0;
    CUBLAS_CHECK(cublasLtMatmulAlgoGetHeuristic(handles.lt, plan.operation, plan.w, plan.x, plan.y,
                                                plan.y, made, most, found.data(), &count));
    for (int i = 0; i < count; ++i)
        if (found[i].state == CUBLAS_STATUS_SUCCESS)
            algorithms.all[algorithms.count++] = found[i].algo;
    require(algorithms.count > 0, what, ": cuBLASLt knows no way to multiply these matrices");
    return algorithms;
}

// The number of parts of the sums, and how they are added.
inline std::array<int32_t, 2> order_of(const cublasLtMatmulAlgo_t& algorithm) {
    std::array<int32_t, 2> order{};
    const cublasLtMatmulAlgoConfigAttributes_t attributes[] = {
        CUBLASLT_ALGO_CONFIG_SPLITK_NUM, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME};
    for (int i = 0; i < 2; ++i)
        CUBLAS_CHECK(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attributes[i], &order[i],
                                                          sizeof order[i], nullptr));
    return order;
}

struct Event {
    Event() { CUDA_CHECK(cudaEventCreate(&event)); }
    ~Event() { cudaEventDestroy(event); }
    Event(const Event&) = delete;
    cudaEvent_t event = nullptr;
};

// Whether the stream's work is recorded, not run.
inline bool is_recording(const Handles& handles) {
    cudaStreamCaptureStatus recording = cudaStreamCaptureStatusNone;
    CUDA_CHECK(cudaStreamIsCapturing(handles.stream, &recording));
    return recording != cudaStreamCaptureStatusNone;
}

// The fastest of the algorithms that cut their sums as the first one does, by the time of `trials`
// calls of run(algorithm), which returns a cublasStatus_t. On Hopper all of these give the same
// bits, as measured (docs/kernels/training.md), so timing does not change results.
template <class Run>
cublasLtMatmulAlgo_t fastest(const Handles& handles, const Algorithms& found, int trials,
                             const Run& run) {
    const auto milliseconds_of = [&](const cublasLtMatmulAlgo_t& algorithm) {
        const Event begin, end;
        if (run(algorithm) != CUBLAS_STATUS_SUCCESS) return std::numeric_limits<float>::max();
        CUDA_CHECK(cudaEventRecord(begin.event, handles.stream));
        for (int i = 0; i < trials; ++i) CUBLAS_CHECK(run(algorithm));
        CUDA_CHECK(cudaEventRecord(end.event, handles.stream));
        CUDA_CHECK(cudaEventSynchronize(end.event));
        float ms = 0;
        CUDA_CHECK(cudaEventElapsedTime(&ms, begin.event, end.event));
        return ms;
    };
    const cublasLtMatmulAlgo_t* best = &found.all[0];
    float least = std::numeric_limits<float>::max();
    for (int i = 0; i < found.count; ++i) {
        if (order_of(found.all[i]) != order_of(found.all[0])) continue;
        const float ms = milliseconds_of(found.all[i]);
        if (ms < least) least = ms, best = &found.all[i];
    }
    return *best;
}

}  // namespace hark::cuda::lt
