// Libraries of hark that are opened on first use: no tool links CUDA, NCCL or MPI, so the same
// tools run if those are missing.
#pragma once

#include <filesystem>
#include <string>

#include "core/error.h"

// A function of such a library that the tools look up.
#define HARK_EXPORT extern "C" __attribute__((visibility("default")))

namespace hark {

// Description of a plugin, with the texts of its errors.
struct PluginKind {
    const char* file;      // "libhark-cuda.so"
    const char* abi_name;  // symbol of the function that returns the version of its interface
    int abi;               // the version needed
    const char* without;   // "no GPU can be used"
    const char* built;     // "it is built where CUDA's compiler nvcc is installed"
    const char* needs;     // "CUDA's libraries (cuBLAS) must be installed where the loader ..."
    bool global = false;   // its dependencies see its libraries' symbols
};

// Why a library of hark cannot be used.
enum class PluginProblem {
    missing,      // it is not installed
    unloadable,   // the loader refuses it: a library that it needs is not there
    other_build,  // it is of another build than the tool
};

class PluginError : public Error {
  public:
    PluginError(PluginProblem problem, const std::string& message)
        : Error(message), problem_(problem) {}
    PluginProblem problem() const { return problem_; }

  private:
    PluginProblem problem_;
};

// Path of a library of hark; empty if it is not installed.
std::filesystem::path plugin_path(const char* file);

class Plugin {
  public:
    // Opens it for the rest of the process. Throws PluginError that says where it was looked for,
    // why it cannot be loaded, or that it is of another build.
    explicit Plugin(const PluginKind& kind);

    // Throws PluginError if the library has no symbol of that name.
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
