#include "kernels/cuda_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cuda_gradients.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libhark-cuda.so";

// Fixed places and no search path: the library belongs to the build that the tool came from.
std::vector<fs::path> library_places() {
    std::error_code failed;
    const fs::path binaries = fs::read_symlink("/proc/self/exe", failed).parent_path();
    return {binaries / "../lib" / kLibrary, binaries / ".." / HARK_LIBRARY_DIR / kLibrary,
            fs::path(HARK_PREFIX_LIBRARY_DIR) / kLibrary};
}

fs::path find_library() {
    std::string looked;
    for (const fs::path& place : library_places()) {
        std::error_code failed;
        if (fs::exists(place, failed)) return place;
        const std::string name = place.lexically_normal().string();
        if (looked.find(name) == std::string::npos) looked += (looked.empty() ? "" : ", ") + name;
    }
    fail("no GPU can be used: found no ", kLibrary, " (looked for ", looked,
         "); it is built where CUDA's compiler nvcc is installed");
}

template <class Function>
Function symbol(void* library, const char* name, const fs::path& path) {
    void* address = dlsym(library, name);
    require(address != nullptr, path.string(), ": expected hark's CUDA library, found no symbol ",
            name);
    return reinterpret_cast<Function>(address);
}

struct Library {
    fs::path path;
    void* handle;
};

Library open_library() {
    const fs::path path = find_library().lexically_normal();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* reason = dlerror();
        fail("no GPU can be used: cannot load ", path.string(), ": ", reason ? reason : "unknown",
             "; CUDA's libraries (cuBLAS) must be installed where the loader finds them");
    }
    const int abi = symbol<int (*)()>(library, "hark_cuda_abi", path)();
    require(abi == kCudaAbi, path.string(), ": expected interface version ", kCudaAbi,
            " of hark's CUDA library, found ", abi, "; tools and library must be of one build");
    // Never closed: contexts and their memory may live until the process ends.
    return {path, library};
}

const Library& library() {
    static const Library kLibrary = open_library();
    return kLibrary;
}

}  // namespace

const CudaOps& cuda_ops() {
    static const CudaOps* ops =
        symbol<const CudaOps* (*)()>(library().handle, "hark_cuda_ops", library().path)();
    return *ops;
}

const CudaGradients& cuda_gradients() {
    static const CudaGradients* gradients = symbol<const CudaGradients* (*)()>(
        library().handle, "hark_cuda_gradients", library().path)();
    return *gradients;
}

void* cuda_symbol(const char* name) {
    return symbol<void*>(library().handle, name, library().path);
}

}  // namespace hark
