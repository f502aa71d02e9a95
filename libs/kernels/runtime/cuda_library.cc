#include "kernels/runtime/cuda_library.h"

#include "kernels/cuda_abi.h"
#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

constexpr const char* kFile = "libhark-cuda.so";

// Never closed: contexts and their memory may live until the process ends.
const Plugin& library() {
    static const Plugin kLibrary(
        {.file = kFile,
         .abi_name = "hark_cuda_abi",
         .abi = kCudaAbi,
         .without = "no GPU can be used",
         .built = "it is built where CUDA's compiler nvcc is installed",
         .needs = "CUDA's libraries (cuBLAS) must be installed where the loader finds them"});
    return kLibrary;
}

}  // namespace

bool cuda_library_is_there() { return !plugin_path(kFile).empty(); }

const CudaRuntime& cuda_runtime() {
    static const CudaRuntime* runtime =
        library().symbol<const CudaRuntime* (*)()>("hark_cuda_runtime")();
    return *runtime;
}

void* cuda_symbol(const char* name) { return library().symbol<void*>(name); }

}  // namespace hark
