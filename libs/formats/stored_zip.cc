#include "formats/stored_zip.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/files/byte_cursor.h"

namespace hark {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kMaxComment = 65535;
constexpr uint32_t kIn64 = 0xffffffff;  // the number is in a zip64 field
constexpr uint16_t kEncrypted = 1;

struct Directory {
    uint64_t entries = 0, bytes = 0, offset = 0;
};

// Where the end record begins: the last one whose comment reaches to the archive's end.
size_t find_end(std::string_view archive, const std::string& where) {
    for (size_t comment = 0; comment <= kMaxComment && kEndBytes + comment <= archive.size();
         ++comment) {
        ByteCursor end(archive, where, archive.size() - kEndBytes - comment);
        if (end.number<uint32_t>() != kEnd) continue;
        end.take(16);
        if (end.number<uint16_t>() == comment) return archive.size() - kEndBytes - comment;
    }
    fail(where, ": expected a zip archive, found no directory at its end (truncated?)");
}

Directory find_directory(std::string_view archive, const std::string& where) {
    const size_t at = find_end(archive, where);
    ByteCursor end(archive, where, at + 10);
    Directory directory;
    directory.entries = end.number<uint16_t>();
    directory.bytes = end.number<uint32_t>();
    directory.offset = end.number<uint32_t>();
    if (at < kLocatorBytes) return directory;
    ByteCursor locator(archive, where, at - kLocatorBytes);
    if (locator.number<uint32_t>() != kLocator64) return directory;
    locator.take(4);
    ByteCursor end64(archive, where, locator.number<uint64_t>());
    require(end64.number<uint32_t>() == kEnd64, where, ": expected zip64's end record, found none");
    end64.take(28);
    directory.entries = end64.number<uint64_t>();
    directory.bytes = end64.number<uint64_t>();
    directory.offset = end64.number<uint64_t>();
    return directory;
}

struct Entry {
    std::string name;
    uint64_t stored = 0, bytes = 0, local = 0;
};

// Takes the numbers that do not fit 32 bits from zip64's extra field.
void read_extra(std::string_view extra, Entry& entry, const std::string& where) {
    ByteCursor fields(extra, where);
    while (fields.left() >= 4) {
        const uint16_t kind = fields.number<uint16_t>();
        ByteCursor field(fields.take(fields.number<uint16_t>()), where);
        if (kind != 1) continue;
        for (uint64_t* number : {&entry.bytes, &entry.stored, &entry.local})
            if (*number == kIn64) *number = field.number<uint64_t>();
    }
}

Entry read_entry(ByteCursor& directory, const std::string& where) {
    require(directory.number<uint32_t>() == kCentral, where,
            ": expected an entry of the zip directory at byte ", directory.at() - 4);
    directory.take(4);
    const uint16_t flags = directory.number<uint16_t>(), method = directory.number<uint16_t>();
    directory.take(8);
    Entry entry;
    entry.stored = directory.number<uint32_t>();
    entry.bytes = directory.number<uint32_t>();
    const uint16_t name = directory.number<uint16_t>(), extra = directory.number<uint16_t>(),
                   comment = directory.number<uint16_t>();
    directory.take(8);
    entry.local = directory.number<uint32_t>();
    entry.name = directory.take(name);
    const std::string at = concat(where, ": member '", entry.name, "'");
    require((flags & kEncrypted) == 0, at, " is encrypted");
    require(method == 0, at, " is compressed (method ", method, "): expected it as it is");
    read_extra(directory.take(extra), entry, at);
    directory.take(comment);
    require(entry.stored == entry.bytes, at, ": expected ", entry.bytes, " bytes, found ",
            entry.stored);
    return entry;
}

}  // namespace

std::map<std::string, ZipMember> stored_members(std::string_view archive,
                                                const std::string& where) {
    const Directory found = find_directory(archive, where);
    ByteCursor directory(ByteCursor(archive, where, found.offset).take(found.bytes), where);
    const std::string_view files = archive.substr(0, found.offset);
    std::map<std::string, ZipMember> members;
    std::vector<std::pair<uint64_t, uint64_t>> places;  // of the headers and their data
    for (uint64_t i = 0; i < found.entries; ++i) {
        const Entry entry = read_entry(directory, where);
        const std::string at = concat(where, ": member '", entry.name, "'");
        ByteCursor local(files, at, entry.local);
        require(local.number<uint32_t>() == kLocal, at, ": expected its header at byte ",
                entry.local, ", found none");
        local.take(22);
        const uint16_t name = local.number<uint16_t>(), extra = local.number<uint16_t>();
        local.take(uint64_t{name} + extra);
        const ZipMember member{local.at(), entry.bytes};
        local.take(entry.bytes);
        require(members.try_emplace(entry.name, member).second, at, " is there twice");
        places.push_back({entry.local, local.at()});
    }
    std::sort(places.begin(), places.end());
    for (size_t i = 1; i < places.size(); ++i)
        require(places[i - 1].second <= places[i].first, where, ": the member at byte ",
                places[i].first, " overlaps the one at byte ", places[i - 1].first,
                ", which ends at ", places[i - 1].second);
    return members;
}

}  // namespace hark
