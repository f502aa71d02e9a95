#include "kernels/ops_table.h"

#include "kernels/runtime/cuda_library.h"

namespace hark {

const CudaOps& cuda_ops() {
    static const CudaOps* ops =
        reinterpret_cast<const CudaOps* (*)()>(cuda_symbol("hark_cuda_ops"))();
    return *ops;
}

}  // namespace hark
