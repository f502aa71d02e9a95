#include "models/installed.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "core/error.h"
#include "core/models.h"
#include "models/describe.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKinds[] = {"whisper", "gpt"};

fs::path link_to_default(const std::string& kind) { return user_models() / (kind + "-default"); }

bool is_default(const std::string& name) {
    return name == "whisper-default" || name == "gpt-default";
}

bool ends_as_a_model(const std::string& name) {
    return name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".gguf");
}

// Of models in other folders.
void add_defaults(std::vector<InstalledModel>& models) {
    for (const char* kind : kKinds) {
        const fs::path link = link_to_default(kind);
        std::error_code failed;
        if (!fs::is_symlink(link, failed)) continue;
        const fs::path chosen = fs::canonical(link, failed);
        const bool listed =
            std::any_of(models.begin(), models.end(), [&](const InstalledModel& model) {
                std::error_code ignored;
                return fs::canonical(model.path, ignored) == chosen;
            });
        if (!listed) models.push_back({link.filename(), failed ? link : chosen});
    }
}

// A directory's, of the files in it.
uint64_t bytes_on_disk(const fs::path& path) {
    if (!fs::is_directory(path)) return fs::file_size(path);
    uint64_t bytes = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(path)) {
        std::error_code failed;
        if (file.is_regular_file(failed)) bytes += file.file_size();
    }
    return bytes;
}

std::string table_line(const char* mark, const std::string& name, const char* kind,
                       const char* format, const std::string& shape, const std::string& size,
                       const std::string& path) {
    char columns[512];
    std::snprintf(columns, sizeof columns, "%s %-24s %-8s %-13s %-24s %12s  ", mark, name.c_str(),
                  kind, format, shape.c_str(), size.c_str());
    return columns + path + "\n";
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
            std::error_code gone;
            const bool is_folder = fs::is_directory(entry->path(), gone);
            if (!is_folder && !fs::is_regular_file(entry->path(), gone)) continue;
            if (name.starts_with('.')) continue;
            if (is_default(name) && entry->is_symlink(gone)) continue;
            if (names.insert(name).second)
                models.push_back({name, entry->path(), is_folder || ends_as_a_model(name)});
        }
        std::sort(models.begin() + first, models.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
    }
    if (!user_models().empty()) add_defaults(models);
    return models;
}

std::string heading_of_models() {
    return table_line(" ", "NAME", "KIND", "FORMAT", "SHAPE", "SIZE", "PATH");
}

std::string line_of(const InstalledModel& installed) {
    const AnyModel model = open_any_model(installed.path);
    const bool chosen = fs::canonical(installed.path) == chosen_model(model.kind());
    return table_line(chosen ? "*" : " ", installed.name, model.kind(), model.format(),
                      shape_of(model), megabytes(bytes_on_disk(installed.path)),
                      installed.path.lexically_normal().string());
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
    const fs::path folder = own_models(), link = link_to_default(kind);
    std::error_code failed;
    require(!fs::exists(fs::symlink_status(link, failed)) || fs::is_symlink(link), link.string(),
            ": expected a link or nothing, found something else");
    // The link itself stands for what it is a link to.
    const bool itself = fs::is_symlink(path) && path.filename() == link.filename();
    const bool neighbour = !itself && fs::equivalent(path.parent_path(), folder, failed);
    const fs::path target = neighbour ? path.filename() : fs::canonical(path);
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
    std::error_code failed;
    const fs::path path =
        user_models().empty() ? fs::path() : fs::canonical(link_to_default(kind), failed);
    return failed ? fs::path() : path;
}

}  // namespace hark::models
