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

bool file_exists(const fs::path& path) {
    std::error_code failed;
    return fs::is_regular_file(path, failed);
}

// The names that a model in one file may have.
std::vector<std::string> file_names(const std::string& name, const std::string& kind) {
    if (kind == "whisper") return {name, "whisper-" + name, name + ".pt", "ggml-" + name + ".bin"};
    return {name, "gpt-" + name, name + ".gguf"};
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

// A link must lead to something.
void check_link(const fs::path& path, const char* advice) {
    std::error_code failed;
    require(!fs::is_symlink(path, failed) || fs::exists(path, failed), path.string(),
            ": expected a model, found a link to nothing", advice);
}

// `path`, once it looks like a model: a file's reader looks further.
fs::path checked(const fs::path& path, const std::string& kind) {
    std::error_code failed;
    if (file_exists(path) || fs::exists(path / "config.json", failed)) return path;
    const std::string names = some_names(path);
    fail(path.string(), ": expected a model's directory as Hugging Face publishes it ",
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
    const fs::path installed = executable_directory() / "../share/hark/models";
    std::vector<fs::path> folders = {installed.lexically_normal(), fs::path(HARK_SOURCE_MODELS)};
    if (const fs::path own = user_models(); !own.empty()) folders.insert(folders.begin(), own);
    return folders;
}

fs::path find_model(const std::string& name, const std::string& kind) {
    if (name.empty()) {
        const fs::path chosen = user_models() / (kind + "-default");
        check_link(chosen, "; choose one with hark-model use NAME");
        require(directory_exists(chosen) || file_exists(chosen),
                "no model chosen: give --model NAME or PATH, fetch one with "
                "hark-model get NAME and choose it with hark-model use NAME, or give --model demo "
                "(a small demonstration model",
                kind == "whisper" ? ", synthetic voices only)" : ")");
        return checked(chosen, kind);
    }
    if (name.find('/') != std::string::npos) {
        require(directory_exists(name) || file_exists(name), name,
                ": expected a model's directory or file, found none");
        return checked(name, kind);
    }
    const fs::path found = find_named_model(name, kind);
    if (found.empty()) fail_unnamed(name, {kind});
    return found;
}

fs::path find_named_model(const std::string& name, const std::string& kind) {
    for (const fs::path& root : model_folders()) {
        for (const std::string& candidate : {name, kind + "-" + name}) {
            check_link(root / candidate, "");
            if (directory_exists(root / candidate)) return checked(root / candidate, kind);
        }
        for (const std::string& candidate : file_names(name, kind))
            if (file_exists(root / candidate)) return root / candidate;
    }
    return {};
}

void fail_unnamed(const std::string& name, const std::vector<std::string>& kinds) {
    std::string names = concat("'", name, "'"), looked;
    for (const std::string& kind : kinds)
        names += concat(&kind == &kinds.back() ? " or '" : ", '", kind, "-", name, "'");
    for (const fs::path& root : model_folders())
        looked += (looked.empty() ? "" : ", ") + root.string();
    fail("no model ", names, " under ", looked, "; a path must contain '/'");
}

}  // namespace hark
