#include "text/tokenizer/token_model.h"

namespace hark {
namespace {

constexpr std::string_view kHex = "0123456789ABCDEF";

}  // namespace

std::array<int32_t, 256> byte_token_ids(const TokenIds& ids) {
    std::array<int32_t, 256> found;
    for (size_t byte = 0; byte < 256; ++byte) {
        const std::string token = std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">";
        const auto entry = ids.find(token);
        found[byte] = entry == ids.end() ? -1 : entry->second;
    }
    return found;
}

int byte_of_token(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
    const auto digit = [](char c) {
        const bool small = c >= 'a' && c <= 'f';
        return static_cast<int>(kHex.find(small ? static_cast<char>(c - 'a' + 'A') : c));
    };
    const int high = digit(token[3]), low = digit(token[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

size_t metaspace_part_end(std::string_view word, size_t at) {
    // Leading ones belong to the part; the next one after another character begins another part.
    while (word.substr(at).starts_with(kMetaspace)) at += kMetaspace.size();
    const size_t next = word.find(kMetaspace, at);
    return next == word.npos ? word.size() : next;
}

bool has_inner_metaspace(std::string_view token) {
    return metaspace_part_end(token, 0) < token.size();
}

}  // namespace hark
