// Libraries of hark that are opened only when they are asked for: no tool links CUDA, NCCL or MPI,
// so the same tools run where those are missing.
#pragma once

#include <filesystem>
#include <string>

namespace hark {

// What a plugin is, and what its errors say.
struct PluginKind {
    const char* file;      // "libhark-cuda.so"
    const char* abi_name;  // the symbol of the function that tells its interface's version
    int abi;               // which must be this
    const char* without;   // "no GPU can be used"
    const char* built;     // "it is built where CUDA's compiler nvcc is installed"
    const char* needs;     // "CUDA's libraries (cuBLAS) must be installed where the loader ..."
    bool global = false;   // its libraries' symbols are for what these open themselves
};

class Plugin {
  public:
    // Opens it, for the rest of the process's life. Throws Error that says where it has been looked
    // for, why it cannot be loaded, or that it is of another build.
    explicit Plugin(const PluginKind& kind);

    // Throws Error where there is none of that name.
    template <class Function>
    Function symbol(const char* name) const {
        return reinterpret_cast<Function>(address(name));
    }

  private:
    void* address(const char* name) const;

    std::filesystem::path path_;
    void* library_ = nullptr;
};

}  // namespace hark
