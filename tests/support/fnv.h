// A hash by which golden files tell long texts.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace hark::test {

// 64-bit FNV-1a in 16 hexadecimal digits.
inline std::string fnv1a(std::string_view bytes) {
    uint64_t value = 0xCBF29CE484222325u;
    for (const char byte : bytes)
        value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    return text;
}

}  // namespace hark::test
