// Hashes as text.
#pragma once

#include <string>

namespace hark::models {

inline constexpr size_t kSha256Digits = 64, kGitDigits = 40;

// Returns the text if it is a hash of that many hexadecimal digits in lower case, else an empty
// text.
inline std::string hash_of(const std::string& text, size_t digits) {
    const bool is_hash =
        text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
    return is_hash ? text : "";
}

}  // namespace hark::models
