// Zip archives whose members are stored uncompressed, as torch.save writes them.
// Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3 (zip64).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hark {

// A member's bytes in the archive.
struct ZipMember {
    uint64_t offset = 0, bytes = 0;
};

// The members of an archive by their names. Throws Error that begins with `where`: no zip archive,
// a member that is compressed or encrypted, or one that overlaps another or the directory.
std::map<std::string, ZipMember> stored_members(std::string_view archive, const std::string& where);

}  // namespace hark
