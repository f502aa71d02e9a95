// libhark-cuda.so's table of operations.
#include "kernels/ops_table.h"

#include "kernels/cuda/ops.cuh"

extern "C" __attribute__((visibility("default"))) const hark::CudaOps* hark_cuda_ops() {
    static const hark::CudaOps ops = {
#define HARK_OP(name) .name = hark::cuda::name,
#include "kernels/ops.def"
#undef HARK_OP
    };
    return &ops;
}
