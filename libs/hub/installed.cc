#include "hub/installed.h"

#include <unistd.h>

#include <algorithm>

#include "core/error.h"
#include "core/models/published_models.h"
#include "hub/describe.h"
#include "hub/model_handle.h"
#include "hub/model_record.h"
#include "hub/part_directory.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKinds[] = {"whisper", "gpt"};

// Total size of a folder's files. A model may be one file in a folder of its own: then of that
// folder.
uint64_t bytes_on_disk(const fs::path& model) {
    const fs::path path = model_in(model.parent_path()) == model ? model.parent_path() : model;
    if (!fs::is_directory(path)) return fs::file_size(path);
    uint64_t bytes = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(path)) {
        std::error_code failed;
        if (file.is_regular_file(failed)) bytes += file.file_size();
    }
    return bytes;
}

// The entries of the user's folder that NAME may mean.
std::vector<fs::path> own_entries(const std::string& given) {
    const PublishedModel* const published = find_published_model(given);
    const bool is_repository = published && given == published->repository;
    const std::string name =
        is_repository ? concat(published->kind, "-", published->name) : installed_name(given);
    std::vector<fs::path> found;
    for (const std::string& entry : {name, "whisper-" + name, "gpt-" + name, name + ".pt",
                                     "ggml-" + name + ".bin", name + ".gguf"}) {
        std::error_code failed;
        const fs::path path = user_models() / entry, part = part_folder(user_models(), entry);
        if (fs::exists(fs::symlink_status(path, failed)))
            found.push_back(path);
        else if (fs::is_directory(part, failed))
            found.push_back(part);
    }
    return found;
}

// Renames the entry first: a model that is half removed must not have its name.
void remove_entry(const fs::path& path) {
    std::error_code failed;
    if (fs::is_symlink(path, failed) || fs::is_regular_file(path, failed)) {
        fs::remove(path, failed);
        require(!failed, path.string(), ": cannot remove: ", failed.message());
        return;
    }
    const fs::path going = path.parent_path() / concat(".", path.filename().string(), ".removed");
    fs::remove_all(going, failed);
    fs::rename(path, going, failed);
    if (!failed) fs::remove_all(going, failed);
    require(!failed, path.string(), ": cannot remove: ", failed.message());
    const fs::path owner = path.parent_path();
    if (owner != user_models()) fs::remove(owner, failed);  // OWNER/ stays if it holds more
}

}  // namespace

std::vector<InstalledModel> installed_and_defaults() {
    std::vector<InstalledModel> models = installed_models();
    for (const char* kind : kKinds) {
        if (user_models().empty()) continue;
        const fs::path link = default_link(kind);
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
    return models;
}

nlohmann::ordered_json describe_installed(const InstalledModel& installed) {
    const ModelHandle model = open_any_model(installed.path);
    nlohmann::ordered_json out = {
        {"name", installed.name},
        {"kind", model.kind()},
        {"format", model.format()},
        {"shape", shape_of(model)},
        {"bytes", bytes_on_disk(installed.path)},
        {"path", installed.path.lexically_normal().string()},
        {"default", fs::canonical(installed.path) == chosen_model(model.kind())}};
    describe_origin(model, installed.path, out);
    return out;
}

std::string table_of(const nlohmann::ordered_json& models) {
    std::vector<std::vector<std::string>> rows = {
        {"NAME", "KIND", "FORMAT", "SHAPE", "SIZE", "LICENSE", "PATH"}};
    for (const nlohmann::ordered_json& model : models) {
        const auto text = [&](const char* key) { return model[key].get<std::string>(); };
        rows.push_back({text("name"), text("kind"), text("format"), text("shape"),
                        megabytes(model["bytes"].get<uint64_t>()),
                        model.contains("license") ? text("license") : "", text("path")});
    }
    std::vector<size_t> widths(rows.front().size());
    for (const std::vector<std::string>& row : rows)
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string table;
    for (size_t i = 0; i < rows.size(); ++i) {
        const bool chosen = i > 0 && models[i - 1]["default"].get<bool>();
        table += chosen ? "*" : " ";
        for (size_t j = 0; j + 1 < rows[i].size(); ++j)
            table += concat(" ", rows[i][j], std::string(widths[j] - rows[i][j].size(), ' '));
        table += concat("  ", rows[i].back(), "\n");
    }
    return table;
}

fs::path own_models() {
    const fs::path folder = user_models();
    require(!folder.empty(), "no folder for models: neither XDG_DATA_HOME nor HOME is set");
    std::error_code failed;
    fs::create_directories(folder, failed);
    require(!failed, folder.string(), ": cannot make the folder: ", failed.message());
    return folder;
}

void choose_model(const std::string& kind, const fs::path& path) {
    const fs::path folder = own_models(), link = default_link(kind);
    std::error_code failed;
    require(!fs::exists(fs::symlink_status(link, failed)) || fs::is_symlink(link), link.string(),
            ": not a link, so it is not replaced; move this model to another name");
    // If `path` is the link to the default, the new link leads to its target.
    const bool itself = fs::is_symlink(path) && path.filename() == link.filename();
    const bool inside = !itself && fs::equivalent(path.parent_path(), folder, failed);
    const fs::path target = inside ? path.filename() : fs::canonical(path);
    // A link cannot be made under an existing name, but it can be renamed to one.
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
        user_models().empty() ? fs::path() : fs::canonical(default_link(kind), failed);
    return failed ? fs::path() : path;
}

RemovedModel remove_model(const std::string& name) {
    const fs::path folder = own_models();
    require(is_model_name(name), name, ": not a name in ", folder.string(),
            "; only models there are removed");
    const std::vector<fs::path> found = own_entries(name);
    for (const char* kind : kKinds) {
        if (!found.empty()) break;
        const fs::path elsewhere = find_installed_model(name, kind);
        require(elsewhere.empty(), elsewhere.string(), ": not in ", folder.string(),
                "; only models there are removed");
    }
    require(!found.empty(), "no model '", name, "' in ", folder.string(), "; run: hark model list");
    std::string names;
    for (const fs::path& path : found)
        names += (names.empty() ? "" : " or ") + path.filename().string();
    require(found.size() == 1, "'", name, "' is the name of ", found.size(), " models; give ",
            names);
    // A folder OWNER contains models; it is not a model.
    const fs::path& path = found.front();
    std::error_code unreadable;
    require(!fs::is_directory(path, unreadable) || path.filename().string().starts_with('.') ||
                fs::is_symlink(path, unreadable) || fs::exists(path / "config.json", unreadable) ||
                fs::exists(path / "model.bin", unreadable) || model_in(path) != path,
            path.string(), ": not a model (it has no config.json); give OWNER/NAME");
    RemovedModel removed = {path, {}};
    for (const char* kind : kKinds) {
        std::error_code failed;
        const fs::path link = default_link(kind);
        if (fs::equivalent(link, model_in(removed.path), failed) && fs::is_symlink(link))
            removed.defaults.push_back(kind);
    }
    remove_entry(removed.path);
    for (const std::string& kind : removed.defaults) {
        std::error_code gone;
        fs::remove(default_link(kind), gone);
    }
    return removed;
}

}  // namespace hark::models
