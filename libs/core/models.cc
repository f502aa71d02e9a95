#include "core/models.h"

#include <algorithm>
#include <cstdlib>

#include "core/error.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

fs::path executable_directory() {
    std::error_code failed;
    return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

bool directory_exists(const fs::path& path) {
    std::error_code failed;
    return fs::is_directory(path, failed);
}

// "config.txt, notes, ...", in order.
std::string some_names(const fs::path& directory) {
    constexpr size_t kShown = 6;
    std::vector<std::string> names;
    std::error_code failed;
    for (fs::directory_iterator entry(directory, failed), end; !failed && entry != end;
         entry.increment(failed))
        names.push_back(entry->path().filename().string());
    std::sort(names.begin(), names.end());
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
        text += (i == 0 ? "" : ", ") + names[i];
    return names.size() > kShown ? text + ", ..." : text;
}

// `directory`, once it looks like a model's.
fs::path checked(const fs::path& directory, const std::string& kind) {
    std::error_code failed;
    if (fs::exists(directory / "config.json", failed)) return directory;
    const std::string names = some_names(directory);
    fail(directory.string(), ": expected a model's directory as Hugging Face publishes it ",
         "(config.json, model.safetensors, tokenizer.json or vocab.json and merges.txt",
         kind == "whisper" ? ", generation_config.json" : "", "), found no config.json but ",
         names.empty() ? "an empty directory" : names);
}

}  // namespace

fs::path user_models() {
    const char* home = std::getenv("HOME");
    return home && *home ? fs::path(home) / ".local/share/hark/models" : fs::path();
}

std::vector<fs::path> model_folders() {
    std::vector<fs::path> folders = {executable_directory() / "../share/hark/models",
                                     fs::path(HARK_SOURCE_MODELS)};
    if (const fs::path own = user_models(); !own.empty()) folders.insert(folders.begin(), own);
    return folders;
}

fs::path find_model(const std::string& name, const std::string& kind) {
    if (name.empty()) {
        const fs::path chosen = user_models() / (kind + "-default");
        require(directory_exists(chosen),
                "no model chosen: give --model DIR (a Hugging Face directory), fetch one with "
                "hark-model get NAME and choose it with hark-model use NAME, or give --model demo "
                "(a small demonstration model",
                kind == "whisper" ? ", synthetic voices only)" : ")");
        return checked(chosen, kind);
    }
    if (name.find('/') != std::string::npos) {
        std::error_code failed;
        if (fs::is_regular_file(name, failed)) return name;
        require(directory_exists(name), name, ": expected a model's directory or file, found ",
                fs::exists(name, failed) ? "neither" : "none");
        return checked(name, kind);
    }
    std::string looked;
    for (const fs::path& root : model_folders()) {
        for (const std::string& candidate : {name, kind + "-" + name})
            if (directory_exists(root / candidate)) return checked(root / candidate, kind);
        looked += (looked.empty() ? "" : ", ") + root.lexically_normal().string();
    }
    fail("no model '", name, "' or '", kind, "-", name, "' under ", looked,
         "; a path must contain '/'");
}

}  // namespace hark
