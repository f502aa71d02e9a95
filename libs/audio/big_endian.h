// Numbers in files that have their most significant byte first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hark {

// The number in bytes[at, at + count), which the caller has checked to be there.
inline uint64_t big_endian(std::string_view bytes, size_t at, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i)
        value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
}

}  // namespace hark
