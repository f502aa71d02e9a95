// Events and NVTX's ranges for profiles.
#include <nvtx3/nvToolsExt.h>

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/runtime/gpu_span.h"

namespace hark::cuda {
namespace {

std::shared_ptr<void> mark(Context& ctx) {
    enter(ctx, {});
    cudaEvent_t made = nullptr;
    CUDA_CHECK(cudaEventCreate(&made));
    std::shared_ptr<void> event(made,
                                [](void* old) { cudaEventDestroy(static_cast<cudaEvent_t>(old)); });
    CUDA_CHECK(cudaEventRecord(made, stream_of(ctx)));
    return event;
}

double elapsed(void* from, void* to) {
    const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(to));
    if (status == cudaErrorNotReady) {
        cudaGetLastError();  // clears it
        return -1;
    }
    CUDA_CHECK(status);
    float ms = 0;
    CUDA_CHECK(
        cudaEventElapsedTime(&ms, static_cast<cudaEvent_t>(from), static_cast<cudaEvent_t>(to)));
    return static_cast<double>(ms);
}

void wait(void* event) { CUDA_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(event))); }

void push_range(const char* stage) { nvtxRangePushA(stage); }
void pop_range() { nvtxRangePop(); }

}  // namespace
}  // namespace hark::cuda

extern "C" __attribute__((visibility("default"))) const hark::CudaTiming* hark_cuda_timing() {
    namespace cuda = hark::cuda;
    static const hark::CudaTiming timing = {.mark = cuda::mark,
                                            .elapsed = cuda::elapsed,
                                            .wait = cuda::wait,
                                            .ranges = {cuda::push_range, cuda::pop_range}};
    return &timing;
}
