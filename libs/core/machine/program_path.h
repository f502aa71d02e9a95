#pragma once

#include <filesystem>

namespace hark {

// The file of the program that runs; empty if the system does not say.
std::filesystem::path program_path();

}  // namespace hark
