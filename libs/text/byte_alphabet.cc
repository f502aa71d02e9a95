#include "text/byte_alphabet.h"

#include <unordered_map>

#include "text/utf8.h"

namespace hark {

std::array<char32_t, 256> byte_alphabet() {
    std::array<char32_t, 256> alphabet{};
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
        const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
                               (byte >= 0xAE && byte <= 0xFF);
        alphabet[byte] = printable ? byte : next++;
    }
    return alphabet;
}

std::string spell_bytes(std::string_view bytes) {
    static const auto kAlphabet = byte_alphabet();
    std::string spelling;
    for (const char byte : bytes)
        append_code_point(spelling, kAlphabet[static_cast<unsigned char>(byte)]);
    return spelling;
}

std::string bytes_from_alphabet(const std::string& token) {
    static const std::unordered_map<char32_t, char> kBytes = [] {
        std::unordered_map<char32_t, char> bytes;
        const auto alphabet = byte_alphabet();
        for (size_t byte = 0; byte < 256; ++byte) bytes[alphabet[byte]] = static_cast<char>(byte);
        return bytes;
    }();
    if (replace_invalid(token) != token) return token;
    std::string bytes;
    for (size_t at = 0; at < token.size();) {
        const auto found = kBytes.find(next_code_point(token, at));
        if (found == kBytes.end()) return token;
        bytes.push_back(found->second);
    }
    return bytes;
}

}  // namespace hark
