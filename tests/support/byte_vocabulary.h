// The smallest byte-level vocabulary: the 256 bytes as a tiktoken rank file, no merges.
#pragma once

#include <string>

namespace hark::test {

inline std::string byte_vocabulary() {
    const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (int byte = 0; byte < 256; ++byte)
        text += std::string{digits[byte >> 2], digits[(byte & 3) << 4], '=', '='} + " " +
                std::to_string(byte) + "\n";
    return text;
}

}  // namespace hark::test
