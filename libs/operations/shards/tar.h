// Members of tar archives, found by their headers alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace hark::shards {

// A regular file in an archive; its content is in the archive's bytes [offset, offset + bytes).
struct TarMember {
    std::string name;
    uint64_t offset = 0, bytes = 0;
};

// Calls `take` for each regular file, in the archive's order. Reads ustar, pax's paths and sizes,
// and GNU's long names and large sizes. Throws Error that names the archive: no tar (a compressed
// one is none), a header that is broken, or a content that is cut off.
// Source: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block"; GNU tar's manual,
// "Basic Tar Format".
void for_each_member(const std::filesystem::path& archive,
                     const std::function<void(const TarMember& member)>& take);

// The content of a member, which has at most `limit` bytes. Throws Error.
std::string content_of(const std::filesystem::path& archive, const TarMember& member, size_t limit);

}  // namespace hark::shards
