#include "core/models.h"

#include <cstdlib>
#include <vector>

#include "core/error.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

fs::path executable_directory() {
    std::error_code failed;
    return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

fs::path user_models() {
    const char* home = std::getenv("HOME");
    return home && *home ? fs::path(home) / ".local/share/hark/models" : fs::path();
}

bool directory_exists(const fs::path& path) {
    std::error_code failed;
    return fs::is_directory(path, failed);
}

}  // namespace

fs::path find_model(const std::string& name, const std::string& kind) {
    if (name.empty()) {
        const fs::path chosen = user_models() / (kind + "-default");
        require(directory_exists(chosen),
                "no model chosen: give --model DIR (a Hugging Face directory), or --model demo "
                "(a small demonstration model",
                kind == "whisper" ? ", synthetic voices only)" : ")");
        return chosen;
    }
    if (name.find('/') != std::string::npos) {
        require(directory_exists(name), name, ": expected a model's directory, found none");
        return name;
    }
    std::string looked;
    for (const fs::path& root : {user_models(), executable_directory() / "../share/hark/models",
                                 fs::path(HARK_SOURCE_MODELS)}) {
        if (root.empty()) continue;
        for (const std::string& candidate : {name, kind + "-" + name})
            if (directory_exists(root / candidate)) return root / candidate;
        looked += (looked.empty() ? "" : ", ") + root.lexically_normal().string();
    }
    fail("no model '", name, "' or '", kind, "-", name, "' under ", looked,
         "; a path must contain '/'");
}

}  // namespace hark
