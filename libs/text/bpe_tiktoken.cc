// tiktoken's rank files.
#include <algorithm>

#include "core/error.h"
#include "core/files/files.h"
#include "text/bpe_builder.h"
#include "text/lines.h"

namespace hark {
namespace {

// GPT-2's longest token has 128 bytes; the bound keeps a hostile file from costing the square of
// its size.
constexpr size_t kMaxRankedToken = 512;

std::string decode_base64(std::string_view text, const std::string& where) {
    std::string bytes;
    uint32_t bits = 0;
    int held = 0;
    while (text.ends_with('=')) text.remove_suffix(1);
    for (char c : text) {
        const uint32_t digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                               : c >= 'a' && c <= 'z' ? c - 'a' + 26
                               : c >= '0' && c <= '9' ? c - '0' + 52
                               : c == '+'             ? 62
                               : c == '/'             ? 63
                                                      : 64;
        require(digit < 64, where, ": expected base64, found the byte ",
                static_cast<int>(static_cast<unsigned char>(c)));
        bits = (bits << 6 | digit) & 0xFFFF;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        bytes.push_back(static_cast<char>(bits >> held & 0xFF));
    }
    return bytes;
}

}  // namespace

Bpe Bpe::parse_tiktoken(std::string_view text, const std::string& where) {
    std::unordered_map<std::string, int32_t> ranks;
    const size_t limit = 2 * static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1024;
    for_each_line(text, [&](std::string_view line, size_t number) {
        if (line.empty()) return;
        const std::string at = concat(where, ": line ", number);
        const size_t space = line.find(' ');
        require(space != line.npos, at, ": expected a token in base64, a space and a rank");
        const std::string_view digits = line.substr(space + 1);
        require(!digits.empty() && digits.size() <= 9 &&
                    digits.find_first_not_of("0123456789") == digits.npos,
                at, ": expected a rank, found '", digits.substr(0, 20), "'");
        const int32_t rank = std::stoi(std::string(digits));
        require(static_cast<size_t>(rank) < limit, at, ": the rank ", rank,
                " is out of range for the file");
        const std::string bytes = decode_base64(line.substr(0, space), at);
        require(bytes.size() <= kMaxRankedToken, at, ": expected a token of at most ",
                kMaxRankedToken, " bytes, found ", bytes.size());
        require(ranks.try_emplace(bytes, rank).second, at, ": the token is there already");
    });
    return BpeBuilder::ranked(ranks, where);
}

Bpe Bpe::from_tiktoken(const std::filesystem::path& file) {
    return parse_tiktoken(read_file(file, kMaxTokenizerFile), file.string());
}

}  // namespace hark
