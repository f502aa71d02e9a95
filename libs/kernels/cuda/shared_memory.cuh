// How much shared memory a kernel may be launched with.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <utility>

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// Lets `kernel` be launched with that many bytes of dynamic shared memory on this GPU. The limit
// belongs to the kernel, whatever thread launches it, and is only raised: a call that needs less
// does not take it from another thread that is about to launch.
inline void allow_shared(const void* kernel, int bytes) {
    static std::mutex mutex;
    static std::map<std::pair<int, const void*>, int> largest;
    int gpu = 0;
    CUDA_CHECK(cudaGetDevice(&gpu));
    const std::lock_guard lock(mutex);
    int& allowed = largest[{gpu, kernel}];
    if (bytes <= allowed) return;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    allowed = bytes;
}

}  // namespace hark::cuda
