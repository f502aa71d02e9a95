#include "core/models/models.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "core/cli/settings.h"
#include "core/cli/suggest.h"
#include "core/error.h"
#include "core/machine/program_path.h"
#include "core/models/published_models.h"
#include "core/ranges.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kModelKinds = {"whisper", "gpt"};

fs::path executable_folder() { return program_path().parent_path(); }

bool is_folder(const fs::path& path) {
    std::error_code failed;
    return fs::is_directory(path, failed);
}

bool is_file(const fs::path& path) {
    std::error_code failed;
    return fs::is_regular_file(path, failed);
}

bool has_config(const fs::path& folder) {
    std::error_code failed;
    return fs::exists(folder / "config.json", failed);
}

// "config.txt, notes, ...", in order.
std::string some_names(const fs::path& folder) {
    constexpr size_t kShown = 6;
    std::vector<std::string> names;
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed))
        names.push_back(entry->path().filename().string());
    require(!failed, folder.string(), ": ", failed.message());
    std::sort(names.begin(), names.end());
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
        text += (i == 0 ? "" : ", ") + names[i];
    return names.size() > kShown ? text + ", ..." : text;
}

void check_link(const fs::path& path) {
    std::error_code failed;
    require(!fs::is_symlink(path, failed) || fs::exists(path, failed), path.string(),
            ": a link to a file that does not exist; choose a model with hark model use MODEL");
}

// Returns `path` if it looks like a model. The reader of a file checks more.
fs::path checked(const fs::path& path) {
    check_link(path);
    std::error_code failed;
    const bool exists = fs::exists(path, failed);
    require(!failed, path.string(), ": ", failed.message());
    require(exists, path.string(), ": no such file or folder");
    const fs::path model = model_in(path);
    if (is_file(model) || has_config(model)) return model;
    require(is_folder(path), path.string(), ": neither a file nor a folder");
    const std::string names = some_names(path);
    fail(path.string(), ": no model in this folder (got ", names.empty() ? "nothing" : names,
         ", expected config.json, model.safetensors and tokenizer.json)");
}

bool begins_as_path(const std::string& model) {
    for (const char* begin : {"/", "./", "../", "~"})
        if (model.starts_with(begin)) return true;
    return false;
}

fs::path without_tilde(const std::string& model) {
    const char* const home = std::getenv("HOME");
    const bool own = model == "~" || model.starts_with("~/");
    return own && home ? fs::path(home + model.substr(1)) : fs::path(model);
}

// Or may exist, in a folder that is named and that this user may not search. The current folder may
// be such a one for every name.
bool may_exist(const std::string& model) {
    std::error_code failed;
    const bool is_missing =
        fs::symlink_status(model, failed).type() == fs::file_type::not_found ||
        (failed == std::errc::permission_denied && model.find('/') == model.npos);
    return !is_missing;
}

// A path that only exists may hide an installed model.
fs::path checked_path(const std::string& model, const std::vector<std::string>& kinds) {
    try {
        return checked(without_tilde(model));
    } catch (const Error& why) {
        if (begins_as_path(model)) throw;
        for (const std::string& kind : kinds)
            if (const fs::path hidden = find_installed_model(model, kind); !hidden.empty())
                fail(why.what(), "; the installed model is ", hidden.string());
        throw;
    }
}

// The names that a model in one file may have.
std::vector<std::string> file_names(const std::string& name, const std::string& kind) {
    if (kind == "whisper") return {name, "whisper-" + name, name + ".pt", "ggml-" + name + ".bin"};
    return {name, "gpt-" + name, name + ".gguf"};
}

// Installed and published names of these kinds, with and without the kind.
std::vector<std::string> known_names(const std::vector<std::string>& kinds) {
    std::set<std::string> names;
    const auto add = [&](const std::string& name) {
        for (const std::string& kind : kModelKinds) {
            if (!name.starts_with(kind + "-")) continue;
            if (contains(kinds, kind)) names.insert({name, name.substr(kind.size() + 1)});
            return;
        }
        names.insert(name);
    };
    for (const InstalledModel& model : installed_models()) add(model.name);
    for (const PublishedModel& model : published_models()) add(concat(model.kind, "-", model.name));
    return {names.begin(), names.end()};
}

bool is_installed(const std::string& name, const std::vector<std::string>& kinds) {
    return std::any_of(kinds.begin(), kinds.end(), [&](const std::string& kind) {
        return !find_installed_model(name, kind).empty();
    });
}

// "run: hark model get NAME" if a model of these kinds is published under that name.
std::string download_advice(const std::string& name, const std::vector<std::string>& kinds) {
    const PublishedModel* const model = find_published_model(name);
    if (!model || is_installed(name, kinds)) return "";
    return contains(kinds, model->kind)
               ? concat("run: ", download_command(*model))
               : concat("'", model->name, "' is a model of another kind (", model->kind, ")");
}

// The short name of the published model whose repository is the nearest: "small" for
// "openai/whisper-smal".
std::string nearest_repository(const std::string& name, const std::vector<std::string>& kinds) {
    std::vector<std::string> repositories;
    for (const PublishedModel& model : published_models())
        if (contains(kinds, model.kind)) repositories.push_back(model.repository);
    const std::string near = nearest(name, repositories);
    return near.empty() ? "" : find_published_model(near)->name;
}

// Whether it is OWNER/NAME, with or without :TYPE, as `hark model get` takes it.
bool is_repository_name(const std::string& name) {
    const size_t slash = name.find('/');
    return slash != name.npos && slash > 0 && slash + 1 < name.size() &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) {
               return c < 0x80 && (std::isalnum(c) ||
                                   std::string_view("-._/:").find(c) != std::string_view::npos);
           });
}

// "OWNER/NAME:Q4_K_M, OWNER/NAME:Q8_0": what is installed of the repository OWNER/NAME.
std::string installed_types(const std::string& repository) {
    std::string names;
    for (const InstalledModel& model : installed_models())
        if (model.name.starts_with(repository + ":"))
            names += (names.empty() ? "" : ", ") + model.name;
    return names;
}

// What to do for a name that is not installed.
std::string advice(const std::string& name, const std::vector<std::string>& kinds) {
    if (const std::string types = installed_types(name); !types.empty()) return "give " + types;
    if (const std::string direct = download_advice(name, kinds); !direct.empty()) return direct;
    std::string near = nearest(name, known_names(kinds));
    if (near.empty()) near = nearest_repository(name, kinds);
    if (near.empty() && is_repository_name(name)) return concat("run: hark model get ", name);
    if (near.empty()) return "run hark model list, or hark model get --list for those to download";
    const std::string command = download_advice(near, kinds);
    return concat("did you mean '", near, "'?", command.empty() ? "" : " ", command);
}

[[noreturn]] void fail_not_found(const std::string& name, const std::vector<std::string>& kinds) {
    fail("no model '", name, "': no file or folder ./", name,
         " exists, and no model of this name is installed; ", advice(name, kinds));
}

fs::path default_model(const std::string& kind) {
    const fs::path chosen = user_models().empty() ? fs::path() : default_link(kind);
    check_link(chosen);
    std::error_code failed;
    if (chosen.empty() || !fs::exists(chosen, failed)) {
        const PublishedModel* const first =
            find_published_model(kind == "whisper" ? "small" : "gpt2");
        fail("no model is set; run: ", download_command(*first),
             "; or give --model MODEL (--model ", "demo is a small one for a trial",
             kind == "whisper" ? ": it knows synthetic voices only)" : ")");
    }
    return checked(chosen);
}

// The entries of one folder; those of OWNER/ if it is no model itself.
void list_folder(const fs::path& folder, const std::string& owner,
                 std::vector<InstalledModel>& models) {
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
        const std::string name = entry->path().filename().string();
        std::error_code gone;
        const bool is_link = entry->is_symlink(gone), folder_too = is_folder(entry->path());
        if (name.starts_with('.') || (!folder_too && !is_file(entry->path()))) continue;
        if (is_link && (name == "whisper-default" || name == "gpt-default")) continue;
        const bool with_ending =
            name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".gguf");
        if (owner.empty() && folder_too && !has_config(entry->path())) {
            const size_t before = models.size();
            list_folder(entry->path(), name + "/", models);
            if (models.size() > before) continue;
        }
        const fs::path model = model_in(entry->path());
        if (owner.empty() || has_config(model) || (folder_too && is_file(model)))
            models.push_back({owner + name, model, folder_too || with_ending});
    }
}

}  // namespace

fs::path user_models() {
    const fs::path data = data_home();
    return data.empty() ? data : data / "hark/models";
}

fs::path default_link(const std::string& kind) { return user_models() / (kind + "-default"); }

std::vector<fs::path> model_folders() {
    const fs::path installed = executable_folder() / "../share/hark/models";
    const fs::path tree = HARK_SOURCE_TREE;  // empty in a package
    std::vector<fs::path> folders = {installed.lexically_normal()};
    if (!tree.empty()) folders.push_back(tree / "models");
    if (const fs::path own = user_models(); !own.empty()) folders.insert(folders.begin(), own);
    return folders;
}

std::string installed_name(const std::string& name) {
    const size_t colon = name.find(':');
    if (colon == name.npos || name.find('/') > colon) return name;
    std::string selection = name.substr(colon + 1);
    if (selection.ends_with(".gguf") || selection.ends_with(".bin"))
        selection.erase(0, selection.rfind('/') + 1);
    else
        std::transform(selection.begin(), selection.end(), selection.begin(),
                       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return name.substr(0, colon + 1) + selection;
}

fs::path model_in(const fs::path& path) {
    if (!is_folder(path) || has_config(path)) return path;
    std::vector<fs::path> models;
    std::error_code failed;
    for (fs::directory_iterator entry(path, failed), end; !failed && entry != end;
         entry.increment(failed)) {
        const std::string name = entry->path().filename().string();
        const bool is_model =
            name.ends_with(".gguf") || (name.ends_with(".bin") && name != "model.bin");
        // NAME-00002-of-00003.gguf is opened by the first part.
        const size_t of = name.rfind("-of-");
        const bool is_later_part = name.ends_with(".gguf") && of != name.npos && of >= 6 &&
                                   name.substr(of - 6, 6) != "-00001";
        if (is_model && !is_later_part && !name.starts_with('.')) models.push_back(entry->path());
    }
    return models.size() == 1 ? models.front() : path;
}

std::vector<InstalledModel> installed_models() {
    std::vector<InstalledModel> models;
    std::set<std::string> names;
    for (const fs::path& folder : model_folders()) {
        std::vector<InstalledModel> here;
        list_folder(folder, "", here);
        std::sort(here.begin(), here.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
        for (const InstalledModel& model : here)
            if (names.insert(model.name).second) models.push_back(model);
    }
    return models;
}

fs::path find_installed_model(const std::string& given, const std::string& kind) {
    const std::string name = installed_name(given);
    for (const fs::path& root : model_folders()) {
        for (const std::string& candidate : {name, kind + "-" + name}) {
            check_link(root / candidate);
            if (is_folder(root / candidate)) return checked(root / candidate);
        }
        for (const std::string& candidate : file_names(name, kind))
            if (is_file(root / candidate)) return root / candidate;
    }
    const PublishedModel* const model = find_published_model(name);
    if (!model || name != model->repository || kind != model->kind) return {};
    return find_installed_model(concat(kind, "-", model->name), kind);
}

bool is_model_name(const std::string& name) {
    const fs::path path = name;
    const auto parts = std::distance(path.begin(), path.end());
    const bool has_control = std::any_of(name.begin(), name.end(),
                                         [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    return !name.empty() && !has_control && parts <= 2 && path.is_relative() &&
           std::none_of(path.begin(), path.end(), [](const fs::path& part) {
               return part.empty() || part.string().starts_with('.') || part == "~";
           });
}

std::optional<InstalledModel> find_listed_model(const std::string& name, const std::string& kind) {
    if (!is_model_name(name)) return std::nullopt;
    const fs::path found = find_installed_model(name, kind);
    if (found.empty()) return std::nullopt;
    for (InstalledModel& model : installed_models()) {
        std::error_code failed;
        if (fs::equivalent(model_in(model.path), model_in(found), failed)) return std::move(model);
    }
    return std::nullopt;
}

bool is_model_path(const std::string& model) { return begins_as_path(model) || may_exist(model); }

fs::path find_model(const std::string& model, const std::string& kind) {
    if (model.empty()) return default_model(kind);
    if (is_model_path(model)) return checked_path(model, {kind});
    const fs::path found = find_installed_model(model, kind);
    if (found.empty()) fail_not_found(model, {kind});
    return found;
}

std::vector<fs::path> find_models(const std::string& model) {
    if (is_model_path(model)) return {checked_path(model, kModelKinds)};
    std::vector<fs::path> found;
    for (const std::string& kind : kModelKinds) {
        const fs::path path = find_installed_model(model, kind);
        std::error_code failed;
        if (!path.empty() && (found.empty() || !fs::equivalent(path, found.front(), failed)))
            found.push_back(path);
    }
    if (found.empty()) fail_not_found(model, kModelKinds);
    return found;
}

}  // namespace hark
