#include "text/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace hark {
namespace {

// How many bytes from `at` on can begin or be one code point, and how many that one needs.
struct Sequence {
    size_t found = 0;   // valid bytes; 0 where the first byte can begin nothing
    size_t needed = 0;  // the code point's length
};

Sequence sequence_at(std::string_view bytes, size_t at) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
    const unsigned char lead = byte(0);
    // The second byte's range keeps out overlong forms, surrogates and values over U+10FFFF
    // (The Unicode Standard, table 3-7).
    unsigned char low = 0x80, high = 0xBF;
    Sequence sequence{1, 1};
    if (lead < 0x80) return sequence;
    if (lead >= 0xC2 && lead <= 0xDF) {
        sequence.needed = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        sequence.needed = 3;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        sequence.needed = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    } else {
        return {0, 1};
    }
    const size_t end = std::min(sequence.needed, bytes.size() - at);
    while (sequence.found < end) {
        const unsigned char next = byte(sequence.found);
        if (next < low || next > high) break;
        low = 0x80;
        high = 0xBF;
        ++sequence.found;
    }
    return sequence;
}

// Appends what is whole or invalid; returns where the unfinished end begins.
size_t append_whole(std::string& out, std::string_view bytes) {
    size_t at = 0;
    while (at < bytes.size()) {
        const Sequence sequence = sequence_at(bytes, at);
        if (sequence.found == sequence.needed) {
            out.append(bytes.substr(at, sequence.needed));
        } else if (sequence.found > 0 && at + sequence.found == bytes.size()) {
            return at;
        } else {
            out.append(kReplacementCharacter);
        }
        at += std::max<size_t>(sequence.found, 1);
    }
    return at;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
    std::string out;
    held_.append(bytes);
    const size_t whole = append_whole(out, held_);
    held_.erase(0, whole);
    return out;
}

std::string Utf8Stream::finish() {
    const bool cut = !held_.empty();
    held_.clear();
    return cut ? std::string(kReplacementCharacter) : std::string();
}

std::string replace_invalid(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    if (append_whole(out, bytes) < bytes.size()) out.append(kReplacementCharacter);
    return out;
}

bool is_valid_utf8(std::string_view bytes) { return first_invalid(bytes) == bytes.npos; }

size_t first_invalid(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size();) {
        uint64_t eight = 0;  // ASCII, eight bytes at a time
        if (at + sizeof eight <= bytes.size()) {
            std::memcpy(&eight, bytes.data() + at, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        const Sequence sequence = sequence_at(bytes, at);
        if (sequence.found != sequence.needed) return at;
        at += sequence.needed;
    }
    return bytes.npos;
}

size_t count_code_points(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    }));
}

void append_code_point(std::string& text, char32_t code_point) {
    const auto put = [&](char32_t bits) { text.push_back(static_cast<char>(bits)); };
    if (code_point < 0x80) {
        put(code_point);
        return;
    }
    if (code_point < 0x800) {
        put(0xC0 | code_point >> 6);
    } else {
        if (code_point < 0x10000) {
            put(0xE0 | code_point >> 12);
        } else {
            put(0xF0 | code_point >> 18);
            put(0x80 | (code_point >> 12 & 0x3F));
        }
        put(0x80 | (code_point >> 6 & 0x3F));
    }
    put(0x80 | (code_point & 0x3F));
}

char32_t next_code_point(std::string_view text, size_t& at) {
    const auto lead = static_cast<unsigned char>(text[at++]);
    if (lead < 0x80) return lead;
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    char32_t code_point = lead & (0x3F >> more);
    for (int i = 0; i < more; ++i)
        code_point = code_point << 6 | (static_cast<unsigned char>(text[at++]) & 0x3F);
    return code_point;
}

}  // namespace hark
