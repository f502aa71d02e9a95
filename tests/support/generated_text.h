// Long texts that a test and a golden script make in the same way, so that no file has to keep
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json/json.h"

namespace hark::test {

inline std::string bytes_from_hex(const std::string& hex) {
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

// Pieces, in hex, laid end to end by a random generator until there are `size` bytes: generated()
// of tests/golden/gpt_tokenize.py.
inline std::string generated_text(const nlohmann::json& pieces, uint64_t seed, size_t size) {
    std::vector<std::string> choices;
    for (const auto& piece : pieces) choices.push_back(bytes_from_hex(piece.get<std::string>()));
    std::string text;
    while (text.size() < size) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        text += choices[(seed >> 33) % choices.size()];
    }
    return text;
}

}  // namespace hark::test
