#include "kernels/runtime/plugin.h"

#include <dlfcn.h>

#include <vector>

#include "core/machine/program_path.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

// Fixed paths without a search path: the library must be of the same build as the tool.
std::vector<fs::path> places(const char* file) {
    const fs::path binaries = program_path().parent_path();
    return {binaries / "../lib" / file, binaries / ".." / HARK_LIBRARY_DIR / file,
            fs::path(HARK_PREFIX_LIBRARY_DIR) / file};
}

fs::path find(const PluginKind& kind) {
    if (const fs::path found = plugin_path(kind.file); !found.empty()) return found;
    std::string looked;
    for (const fs::path& place : places(kind.file)) {
        const std::string name = place.lexically_normal().string();
        if (looked.find(name) == std::string::npos) looked += (looked.empty() ? "" : ", ") + name;
    }
    throw PluginError(PluginProblem::missing, concat(kind.without, ": found no ", kind.file,
                                                     " (looked for ", looked, "); ", kind.built));
}

}  // namespace

fs::path plugin_path(const char* file) {
    for (const fs::path& place : places(file)) {
        std::error_code failed;
        if (fs::exists(place, failed)) return place.lexically_normal();
    }
    return {};
}

Plugin::Plugin(const PluginKind& kind) : path_(find(kind)) {
    library_ = dlopen(path_.c_str(), RTLD_NOW | (kind.global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (library_ == nullptr) {
        const char* reason = dlerror();
        throw PluginError(PluginProblem::unloadable,
                          concat(kind.without, ": cannot load ", path_.string(), ": ",
                                 reason ? reason : "unknown", "; ", kind.needs));
    }
    const int abi = symbol<int (*)()>(kind.abi_name)();
    if (abi != kind.abi)
        throw PluginError(
            PluginProblem::other_build,
            concat(path_.string(), ": expected interface version ", kind.abi,
                   " of hark's library, found ", abi, "; tools and library must be of one build"));
}

void* Plugin::address(const char* name) const {
    void* found = dlsym(library_, name);
    if (found == nullptr)
        throw PluginError(PluginProblem::other_build,
                          concat(path_.string(), ": expected hark's library, found no symbol ",
                                 name, "; tools and library must be of one build"));
    return found;
}

}  // namespace hark
