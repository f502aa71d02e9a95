#include "models/installed.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/models.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

bool is_default(const std::string& name) {
    return name == "whisper-default" || name == "gpt-default";
}

}  // namespace

std::vector<InstalledModel> installed_models() {
    std::vector<InstalledModel> models;
    std::set<std::string> names;
    for (const fs::path& folder : model_folders()) {
        const auto first = static_cast<ptrdiff_t>(models.size());
        std::error_code failed;
        for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
             entry.increment(failed)) {
            const std::string name = entry->path().filename().string();
            const bool model = fs::is_directory(entry->path(), failed) || name.ends_with(".bin") ||
                               name.ends_with(".pt") || name.ends_with(".gguf");
            if (!model || name.starts_with('.') || is_default(name)) continue;
            if (names.insert(name).second) models.push_back({name, entry->path()});
        }
        std::sort(models.begin() + first, models.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
    }
    return models;
}

fs::path own_models() {
    const fs::path folder = user_models();
    require(!folder.empty(), "expected $HOME, under which models are kept, found none");
    std::error_code failed;
    fs::create_directories(folder, failed);
    require(!failed, folder.string(), ": cannot make the folder: ", failed.message());
    return folder;
}

void choose_model(const std::string& kind, const fs::path& path) {
    const fs::path folder = own_models(), link = folder / (kind + "-default");
    std::error_code failed;
    require(!fs::exists(fs::symlink_status(link, failed)) || fs::is_symlink(link), link.string(),
            ": expected a link or nothing, found something else");
    // The link itself stands for what it is a link to.
    const bool itself = fs::is_symlink(path) && path.filename() == link.filename();
    const bool beside = !itself && fs::equivalent(path.parent_path(), folder, failed);
    const fs::path target = beside ? path.filename() : fs::canonical(path);
    // A link cannot be made in another's place, but be renamed there.
    const fs::path fresh = folder / concat(".", kind, "-default.", ::getpid());
    fs::remove(fresh, failed);
    fs::create_symlink(target, fresh, failed);
    if (!failed) fs::rename(fresh, link, failed);
    if (failed) {
        std::error_code ignored;
        fs::remove(fresh, ignored);
        fail(link.string(), ": cannot make this link: ", failed.message());
    }
}

fs::path chosen_model(const std::string& kind) {
    const fs::path folder = user_models();
    std::error_code failed;
    const fs::path path =
        folder.empty() ? fs::path() : fs::canonical(folder / (kind + "-default"), failed);
    return failed ? fs::path() : path;
}

}  // namespace hark::models
