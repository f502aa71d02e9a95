// The installed models: their list, the defaults, and removal.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/models/models.h"

namespace hark::models {

// installed_models(), and then the defaults that are elsewhere, under the names of their links.
std::vector<InstalledModel> installed_and_defaults();
// Returns name, kind, format, shape, bytes, path and default of a model. Throws Error if it does
// not open.
nlohmann::ordered_json describe_installed(const InstalledModel& installed);
// An array of such descriptions as a table.
std::string table_of(const nlohmann::ordered_json& models);

// Makes a model the one that tools of its kind ("whisper", "gpt") take without --model. Throws
// Error if the link cannot be made.
void choose_model(const std::string& kind, const std::filesystem::path& path);
// Returns the canonical path of the default; empty if there is none.
std::filesystem::path chosen_model(const std::string& kind);

struct RemovedModel {
    std::filesystem::path path;
    std::vector<std::string> defaults;  // kinds whose default it was
};
// Removes the model NAME or KIND-NAME from user_models(), and its incomplete download. Throws Error
// if it is elsewhere, is not there or cannot be removed.
RemovedModel remove_model(const std::string& name);

// Returns user_models(), which is made if it does not exist. Throws Error without a home folder.
std::filesystem::path own_models();

}  // namespace hark::models
