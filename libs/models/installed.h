// The models that go by a name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hark::models {

struct InstalledModel {
    std::string name;  // of its directory or file, which --model takes
    std::filesystem::path path;
    bool certain = true;  // a directory, or a file with a model's ending: others may be anything
};

// What the folders that --model looks through hold (core/models.h), sorted by folder, then name;
// without hidden files, and what a name earlier in the list hides. The links to a default come
// last, where what they lead to is not in the list.
std::vector<InstalledModel> installed_models();

// Makes a model the one that tools of its kind ("whisper", "gpt") take without --model. Throws
// Error where the link cannot be made.
void choose_model(const std::string& kind, const std::filesystem::path& path);
// The model chosen so, with links resolved; empty if there is none.
std::filesystem::path chosen_model(const std::string& kind);

// The table of `hark-model list`: its heading, and a model's line. Throw Error where it does not
// open.
std::string heading_of_models();
std::string line_of(const InstalledModel& installed);

// The folder of the user's own models, made where it is missing. Throws Error without a $HOME.
std::filesystem::path own_models();

}  // namespace hark::models
