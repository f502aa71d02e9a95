// Functions of the driver, looked up at run time: nothing links the driver's library.
#pragma once

#include <cuda.h>

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// The function `name` as drivers for CUDA 12.0 have it. Throws Error if there is none.
template <class Function>
Function driver_function(const char* name) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
#else
    CUDA_CHECK(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result));
#endif
    require(result == cudaDriverEntryPointSuccess && found != nullptr, "expected a driver with ",
            name, " (CUDA 12.0), found none");
    return reinterpret_cast<Function>(found);
}

// DRIVER_FUNCTION(cuMemMap)(...): the call is looked up once.
#define DRIVER_FUNCTION(name)                                                               \
    ([] {                                                                                   \
        static const auto function = ::hark::cuda::driver_function<decltype(&name)>(#name); \
        return function;                                                                    \
    }())

}  // namespace hark::cuda
