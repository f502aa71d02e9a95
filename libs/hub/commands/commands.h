// The commands of hark-model: each parses its own command line and returns the exit status.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/cli/cli.h"

namespace hark::models {

int get_command(int argc, char** argv);
int list_command(int argc, char** argv);
int use_command(int argc, char** argv);
int remove_command(int argc, char** argv);
int info_command(int argc, char** argv);
int convert_command(int argc, char** argv);
int verify_command(int argc, char** argv);

// What positional arguments that name a model say about it.
inline constexpr const char* kModelHelp =
    "an installed model's name, or a path (one that exists, or begins with / ./ ../ or ~)";

// Returns the one argument. Throws UsageError for none, for several and for an empty one.
const std::string& only_model(const std::vector<std::string>& names);

}  // namespace hark::models
