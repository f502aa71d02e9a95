// How --model MODEL finds a model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hark {

// Whether MODEL is a path: it begins with `/`, `./`, `../` or `~`, or it exists.
bool is_model_path(const std::string& model);

// MODEL is a path or the name of an installed model (find_installed_model). An empty MODEL is the
// default that the user has set, the link `KIND-default` in user_models(). `kind` is "whisper" or
// "gpt". Throws Error with both readings, the nearest name and the command that gets the model.
std::filesystem::path find_model(const std::string& model, const std::string& kind);
// The same for a tool that takes a model of any kind: one path, or one of each kind.
std::vector<std::filesystem::path> find_models(const std::string& model);

// Looks in model_folders() for the folders NAME and KIND-NAME and for files of these names; of
// Whisper also for NAME.pt and ggml-NAME.bin, of GPT for NAME.gguf. NAME may be OWNER/NAME or
// OWNER/NAME:TYPE (installed_name); a published model's repository is its name too. Returns an empty
// path if there is none.
std::filesystem::path find_installed_model(const std::string& name, const std::string& kind);

// The folder's name of a model of a repository: its type is in capitals, "OWNER/NAME:Q4_K_M", and a
// file has no folders, "OWNER/NAME:FILE.gguf". Other names are returned unchanged.
std::string installed_name(const std::string& name);

// Whether `name` can only mean an entry of a folder of models: NAME or OWNER/NAME, nothing hidden.
bool is_model_name(const std::string& name);
// The model file in a folder without config.json: its one file that ends in .gguf or .bin (not
// CTranslate2's model.bin), or the first of one that gguf-split has split. Otherwise `path` itself.
std::filesystem::path model_in(const std::filesystem::path& path);

struct InstalledModel {
    std::string name;  // that --model takes
    std::filesystem::path path;
    bool certain = true;  // a folder, or a file with a model's ending; others may be anything
};

// Returns what model_folders() hold, sorted by folder, then name. Hidden files, links to the
// defaults and names that an earlier folder has are left out.
std::vector<InstalledModel> installed_models();

// The one that a name from another program means: that of find_installed_model(), if
// installed_models() has it, so that no name leads elsewhere. Throws Error as the former does.
std::optional<InstalledModel> find_listed_model(const std::string& name, const std::string& kind);

// The folders in which a NAME is looked for, in their order.
std::vector<std::filesystem::path> model_folders();
// The first of them, data_home()/hark/models; empty if data_home() is.
std::filesystem::path user_models();
// user_models()/KIND-default.
std::filesystem::path default_link(const std::string& kind);

}  // namespace hark
