#include "kernels/sampling/gpu_sampler.h"

#include "kernels/runtime/cuda_library.h"

namespace hark {

const CudaSampler& cuda_sampler() {
    static const auto* table =
        reinterpret_cast<const CudaSampler* (*)()>(cuda_symbol("hark_cuda_sampler"))();
    return *table;
}

}  // namespace hark
