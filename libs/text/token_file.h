// Token files in llm.c's format: a header of 256 int32 (magic, version, number of tokens), then the
// ids, little-endian: 16 bits each, or 32 where the vocabulary has more than 65,536 tokens.
// Source: llm.c dev/data/data_common.py (20240520: GPT-2; 20240801: Llama 3) and llmc/dataloader.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/files/io.h"
#include "core/files/mapped_file.h"

namespace hark {

inline constexpr size_t kTokenHeaderBytes = 1024;
inline constexpr int64_t kMaxFileTokens = INT32_MAX;  // the header counts them in an int32

struct TokenHeader {
    int64_t count = 0;
    int id_bytes = 2;  // 2 or 4

    int64_t file_bytes() const {
        return static_cast<int64_t>(kTokenHeaderBytes) + count * id_bytes;
    }
    // The header's bytes.
    std::string text() const;
    // Throws Error beginning with `name` where the magic, the version or the count is wrong.
    static TokenHeader parse(std::string_view bytes, const std::string& name);
};

// Bytes an id of this vocabulary takes: 2 up to 65,536 tokens, else 4.
int id_bytes_for(int32_t vocab_size);

// A token file mapped for reading, of any size. Throws Error naming the file, what was expected and
// what was found: another magic or version, a size that does not fit the count.
class TokenFile {
  public:
    explicit TokenFile(const std::filesystem::path& path);

    size_t size() const { return static_cast<size_t>(header_.count); }  // tokens
    int id_bytes() const { return header_.id_bytes; }
    const std::string& name() const { return file_.name(); }
    // No bounds are checked; an id may be over the vocabulary.
    int32_t operator[](size_t i) const;
    void copy(size_t first, size_t count, int32_t* to) const;
    // Throws Error where an id is not below `vocab_size`: reads all of the file.
    void check_vocabulary(int32_t vocab_size) const;

  private:
    MappedFile file_;
    TokenHeader header_;
};

// Reads a token file from a stream, which need not seek. Throws Error where TokenFile does; that
// the stream is too short or too long shows at its end.
class TokenReader {
  public:
    explicit TokenReader(ByteReader& in);

    const TokenHeader& header() const { return header_; }
    // The next ids, at most `count`; none at the end.
    std::vector<int32_t> next(size_t count);

  private:
    ByteReader& in_;
    TokenHeader header_;
    int64_t taken_ = 0;
    std::vector<char> bytes_;
};

// Writes a token file to a descriptor that can seek, from its offset on. Until finish() its
// header is zeros, so that a file of a run that broke is not taken for whole.
class TokenWriter {
  public:
    TokenWriter(int fd, std::string name, int id_bytes);

    // Throws Error where the file would count more than kMaxFileTokens, or the system refuses.
    void write(std::span<const int32_t> ids);
    // The header, and the end.
    void finish();
    int64_t count() const { return header_.count; }

  private:
    int fd_;
    std::string name_;
    TokenHeader header_;
    int64_t begin_;  // the header's offset
    ByteWriter out_;
    std::vector<char> bytes_;
};

}  // namespace hark
