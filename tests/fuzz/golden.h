// The references in tests/golden, as seeds.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/json/json.h"

namespace hark::fuzz {

inline std::filesystem::path golden_folder() {
    return std::filesystem::path(HARK_SOURCE_DIR) / "tests/golden";
}

inline std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline nlohmann::ordered_json golden(const std::string& name) {
    return nlohmann::ordered_json::parse(content(golden_folder() / name));
}

// The files of a folder there with that extension and at most 64 KiB, in order.
inline std::vector<std::filesystem::path> golden_files(const std::string& folder,
                                                       const std::string& extension) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(golden_folder() / folder))
        if (entry.path().extension() == extension && entry.file_size() <= 1 << 16)
            files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace hark::fuzz
