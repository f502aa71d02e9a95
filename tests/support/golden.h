// The references in tests/golden, and the demo models.
#pragma once

#include <filesystem>
#include <string>

#include "core/files/files.h"
#include "core/json/json.h"
#include "support/process.h"

namespace hark::test {

inline nlohmann::json golden(const std::string& name) {
    return nlohmann::json::parse(read_file(source_dir() / "tests/golden" / name));
}

inline std::filesystem::path gpt_demo() { return source_dir() / "models/gpt-demo"; }
inline std::filesystem::path whisper_demo() { return source_dir() / "models/whisper-demo"; }

}  // namespace hark::test
