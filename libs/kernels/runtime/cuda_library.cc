#include "kernels/cuda_library.h"

#include "kernels/cuda_gradients.h"
#include "kernels/plugin.h"

namespace hark {
namespace {

// Never closed: contexts and their memory may live until the process ends.
const Plugin& library() {
    static const Plugin kLibrary(
        {.file = "libhark-cuda.so",
         .abi_name = "hark_cuda_abi",
         .abi = kCudaAbi,
         .without = "no GPU can be used",
         .built = "it is built where CUDA's compiler nvcc is installed",
         .needs = "CUDA's libraries (cuBLAS) must be installed where the loader finds them"});
    return kLibrary;
}

}  // namespace

const CudaOps& cuda_ops() {
    static const CudaOps* ops = library().symbol<const CudaOps* (*)()>("hark_cuda_ops")();
    return *ops;
}

const CudaGradients& cuda_gradients() {
    static const CudaGradients* gradients =
        library().symbol<const CudaGradients* (*)()>("hark_cuda_gradients")();
    return *gradients;
}

void* cuda_symbol(const char* name) { return library().symbol<void*>(name); }

}  // namespace hark
