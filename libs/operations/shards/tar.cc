#include "operations/shards/tar.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/files/files.h"

namespace hark::shards {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 512;
constexpr size_t kLongestName = 1 << 16;  // bytes of a name, or of a pax header

// A field of a header.
struct TarField {
    size_t begin, size;
};
constexpr TarField kName{0, 100}, kSize{124, 12}, kSum{148, 8}, kMagic{257, 6}, kPrefix{345, 155};
constexpr size_t kType = 156;

std::string_view field_of(std::string_view header, TarField field) {
    return header.substr(field.begin, field.size);
}

std::string_view until_zero(std::string_view text) { return text.substr(0, text.find('\0')); }

// Octal digits after spaces; a size may be binary, with the highest bit set.
std::optional<uint64_t> number_of(std::string_view field) {
    if (!field.empty() && (field[0] & 0x80)) {
        uint64_t number = field[0] & 0x7f;
        for (const char c : field.substr(1)) {
            if (number >> 55) return std::nullopt;
            number = number << 8 | static_cast<unsigned char>(c);
        }
        return number;
    }
    field = field.substr(std::min(field.find_first_not_of(' '), field.size()));
    uint64_t number = 0;
    const auto read = std::from_chars(field.data(), field.data() + field.size(), number, 8);
    const std::string_view rest(read.ptr, static_cast<size_t>(field.end() - read.ptr));
    if (read.ec != std::errc() || rest.find_first_not_of(std::string_view(" \0", 2)) != rest.npos)
        return std::nullopt;
    return number;
}

bool has_right_sum(std::string_view header) {
    uint64_t sum = 0;
    for (size_t i = 0; i < header.size(); ++i)
        sum += i >= kSum.begin && i < kSum.begin + kSum.size
                   ? ' '
                   : static_cast<unsigned char>(header[i]);
    return number_of(field_of(header, kSum)) == sum;
}

// What comes before a member's own header.
struct Announced {
    std::optional<std::string> name;
    std::optional<uint64_t> bytes;
};

// Records "LENGTH KEY=VALUE\n".
void read_pax(std::string_view records, Announced& next, const std::string& where) {
    while (!records.empty()) {
        size_t length = 0;
        const auto read = std::from_chars(records.data(), records.data() + records.size(), length);
        const auto digits = static_cast<size_t>(read.ptr - records.data());
        require(read.ec == std::errc() && length > digits + 1 && length <= records.size() &&
                    records[digits] == ' ' && records[length - 1] == '\n',
                where, ": a pax header is broken");
        const std::string_view record = records.substr(digits + 1, length - digits - 2);
        const size_t equals = record.find('=');
        require(equals != record.npos, where, ": a pax header is broken");
        const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
        if (key == "path") next.name = std::string(value);
        if (key == "size") {
            uint64_t bytes = 0;
            const auto size = std::from_chars(value.data(), value.data() + value.size(), bytes);
            require(size.ec == std::errc() && size.ptr == value.data() + value.size(), where,
                    ": a pax header is broken");
            next.bytes = bytes;
        }
        records.remove_prefix(length);
    }
}

std::string read_at(const OpenFile& file, uint64_t offset, size_t bytes, const std::string& where) {
    std::string text(bytes, '\0');
    for (size_t done = 0; done < bytes;) {
        const ssize_t count =
            ::pread(file.fd(), text.data() + done, bytes - done, static_cast<off_t>(offset + done));
        require(count > 0, where, ": cannot be read, or is cut off");
        done += static_cast<size_t>(count);
    }
    return text;
}

}  // namespace

void for_each_member(const fs::path& archive, const std::function<void(const TarMember&)>& take) {
    const OpenFile file(archive);
    const std::string where = archive.string();
    Announced next;
    for (uint64_t at = 0; at < file.bytes();) {
        require(file.bytes() - at >= kBlock, where, ": expected a tar, which is not compressed");
        const std::string header = read_at(file, at, kBlock, where);
        if (header.find_first_not_of('\0') == header.npos) return;
        require(has_right_sum(header), where,
                at == 0 ? ": expected a tar, which is not compressed" : ": a header is broken");
        const std::optional<uint64_t> stated = number_of(field_of(header, kSize));
        const char type = header[kType];
        const bool is_file = type == '0' || type == '\0' || type == '7';
        const uint64_t bytes = is_file && next.bytes ? *next.bytes : stated.value_or(UINT64_MAX);
        at += kBlock;
        require(bytes <= file.bytes() - at, where,
                ": a member is cut off, or its header is broken");
        if (type == 'L' || type == 'x') {
            require(bytes <= kLongestName, where, ": a name of ", bytes, " bytes");
            const std::string text = read_at(file, at, bytes, where);
            if (type == 'x') read_pax(text, next, where);
            if (type == 'L') next.name = std::string(until_zero(text));
        } else if (is_file) {
            std::string name(until_zero(field_of(header, kName)));
            const std::string_view prefix = until_zero(field_of(header, kPrefix));
            if (field_of(header, kMagic) == std::string_view("ustar\0", 6) && !prefix.empty())
                name = concat(prefix, "/", name);
            take({next.name.value_or(name), at, bytes});
        }
        if (type != 'L' && type != 'x' && type != 'g' && type != 'K') next = {};
        at += (bytes + kBlock - 1) / kBlock * kBlock;
    }
}

std::string content_of(const fs::path& archive, const TarMember& member, size_t limit) {
    require(member.bytes <= limit, archive.string(), ": ", member.name, ": expected at most ",
            limit, " bytes, found ", member.bytes);
    return read_at(OpenFile(archive), member.offset, member.bytes, archive.string());
}

}  // namespace hark::shards
