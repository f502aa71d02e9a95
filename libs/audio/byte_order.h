// Whole numbers in files, with their most or their least significant byte first.
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

// The number in the `count` bytes there, up to 8.
inline uint64_t little_endian(const void* bytes, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i)
        value |= uint64_t{static_cast<const unsigned char*>(bytes)[i]} << (8 * i);
    return value;
}
inline uint64_t little_endian(std::string_view bytes, size_t at, size_t count) {
    return little_endian(bytes.data() + at, count);
}

}  // namespace hark
