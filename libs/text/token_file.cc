#include "text/token_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace hark {
namespace {

constexpr int32_t kMagic16 = 20240520, kVersion16 = 1;
constexpr int32_t kMagic32 = 20240801, kVersion32 = 7;
constexpr size_t kTokensAtOnce = size_t{1} << 16;  // tokens that are turned around at a time

int32_t field(std::string_view header, size_t i) {
    int32_t value;
    std::memcpy(&value, header.data() + i * sizeof value, sizeof value);
    return value;
}

template <class Id>
void widen(const void* from, size_t count, int32_t* to) {
    const char* at = static_cast<const char*>(from);
    for (size_t i = 0; i < count; ++i, at += sizeof(Id)) {
        Id id;
        std::memcpy(&id, at, sizeof id);
        to[i] = static_cast<int32_t>(id);
    }
}

void widen(const void* from, int id_bytes, size_t count, int32_t* to) {
    if (id_bytes == 2)
        widen<uint16_t>(from, count, to);
    else
        widen<uint32_t>(from, count, to);
}

}  // namespace

std::string TokenHeader::text() const {
    const int32_t fields[3] = {id_bytes == 2 ? kMagic16 : kMagic32,
                               id_bytes == 2 ? kVersion16 : kVersion32,
                               static_cast<int32_t>(count)};
    std::string bytes(kTokenHeaderBytes, '\0');
    std::memcpy(bytes.data(), fields, sizeof fields);
    return bytes;
}

TokenHeader TokenHeader::parse(std::string_view bytes, const std::string& name) {
    constexpr size_t kFieldsBytes = 3 * sizeof(int32_t);
    const int32_t magic = bytes.size() >= kFieldsBytes ? field(bytes, 0) : -1;
    require(magic != 0, name, ": this token file has no header: the run that wrote it did not ",
            "finish; write it again");
    require(magic == kMagic16 || magic == kMagic32, name,
            ": not a token file; gpt-tokenize makes one from text");
    require(bytes.size() >= kTokenHeaderBytes, name, ": its header is cut off (got ", bytes.size(),
            " bytes, expected ", kTokenHeaderBytes, ")");
    const int32_t version = field(bytes, 1), count = field(bytes, 2);
    const int32_t expected = magic == kMagic16 ? kVersion16 : kVersion32;
    require(version == expected, name, ": wrong version of the token format (got ", version,
            ", expected ", expected, ")");
    require(count >= 0, name, ": wrong number of tokens in the header (got ", count, ")");
    return {count, magic == kMagic16 ? 2 : 4};
}

int id_bytes_for(int32_t vocab_size) { return vocab_size <= 65536 ? 2 : 4; }

TokenFile::TokenFile(const std::filesystem::path& path) : file_(path) {
    const std::string_view bytes = file_.text();
    header_ = TokenHeader::parse(bytes, file_.name());
    require(static_cast<size_t>(header_.file_bytes()) == file_.size(), file_.name(),
            ": its header counts ", header_.count, " tokens (got a file of ", file_.size(),
            " bytes, expected ", header_.file_bytes(), ")");
}

int32_t TokenFile::operator[](size_t i) const {
    int32_t id;
    copy(i, 1, &id);
    return id;
}

void TokenFile::copy(size_t first, size_t count, int32_t* to) const {
    const size_t width = static_cast<size_t>(header_.id_bytes);
    widen(file_.data() + kTokenHeaderBytes + first * width, header_.id_bytes, count, to);
    file_.check();
}

void TokenFile::check_vocabulary(int32_t vocab_size) const {
    std::vector<int32_t> ids(kTokensAtOnce);
    for (size_t at = 0; at < size(); at += kTokensAtOnce) {
        const size_t count = std::min(kTokensAtOnce, size() - at);
        copy(at, count, ids.data());
        for (size_t i = 0; i < count; ++i)
            // An id of 2^31 or more is negative here.
            require(ids[i] >= 0 && ids[i] < vocab_size, name(), ": token ", at + i, ": the id ",
                    static_cast<uint32_t>(ids[i]), " is over the vocabulary of ", vocab_size);
    }
}

TokenReader::TokenReader(ByteReader& in) : in_(in) {
    std::string bytes(kTokenHeaderBytes, '\0');
    bytes.resize(in.read(bytes.data(), bytes.size()));
    header_ = TokenHeader::parse(bytes, in.name());
}

std::vector<int32_t> TokenReader::next(size_t count) {
    const auto width = static_cast<size_t>(header_.id_bytes);
    count = std::min({count, kTokensAtOnce, static_cast<size_t>(header_.count - taken_)});
    bytes_.resize(std::max(count * width, size_t{1}));
    const size_t got = in_.read(bytes_.data(), bytes_.size());
    require(count > 0 || got == 0, in_.name(), ": more bytes follow the ", header_.count,
            " tokens that its header counts");
    require(count == 0 || got == count * width, in_.name(), ": the input is cut off (got ",
            taken_ + static_cast<int64_t>(got / width), " tokens, expected ", header_.count, ")");
    std::vector<int32_t> ids(count);
    widen(bytes_.data(), header_.id_bytes, count, ids.data());
    taken_ += static_cast<int64_t>(count);
    return ids;
}

TokenWriter::TokenWriter(int fd, std::string name, int id_bytes)
    : fd_(fd),
      name_(std::move(name)),
      header_{0, id_bytes},
      begin_(::lseek(fd, 0, SEEK_CUR)),
      out_(fd, name_) {
    require(begin_ >= 0, name_, ": cannot seek: ", std::strerror(errno));
    out_.write(std::string(kTokenHeaderBytes, '\0'));
}

void TokenWriter::write(std::span<const int32_t> ids) {
    header_.count += static_cast<int64_t>(ids.size());
    require(header_.count <= kMaxFileTokens, name_, ": more than ", kMaxFileTokens,
            " tokens, which one token file cannot count: use --output-dir with --shard-tokens");
    const auto width = static_cast<size_t>(header_.id_bytes);
    bytes_.resize(ids.size() * width);
    for (size_t i = 0; i < ids.size(); ++i)  // the low bytes come first
        std::memcpy(bytes_.data() + i * width, &ids[i], width);
    out_.write(bytes_.data(), bytes_.size());
}

void TokenWriter::finish() {
    out_.flush();
    const std::string header = header_.text();
    const ssize_t put = ::pwrite(fd_, header.data(), header.size(), begin_);
    require(put == static_cast<ssize_t>(header.size()), name_,
            ": cannot write its header: ", std::strerror(errno));
}

}  // namespace hark
