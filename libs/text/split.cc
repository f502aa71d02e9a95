#include "text/split.h"

#include <array>
#include <atomic>
#include <memory>

#include "text/regex.h"
#include "text/utf8.h"

namespace hark {
namespace {

constexpr size_t kBlock = 256;  // code points whose classes are found out together
using Block = std::array<CharClass, kBlock>;

constexpr CharClass ascii_class(unsigned char c) {
    if ((c >= 0x09 && c <= 0x0D) || c == ' ') return CharClass::space;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharClass::letter;
    return c >= '0' && c <= '9' ? CharClass::number : CharClass::other;
}

constexpr std::array<CharClass, 128> kAscii = [] {
    std::array<CharClass, 128> classes{};
    for (unsigned char c = 0; c < 128; ++c) classes[c] = ascii_class(c);
    return classes;
}();

// PCRE2 knows Unicode's letters and numbers. White space is spelt out: it is Unicode's White_Space
// property, and PCRE2's own \s takes U+180E for one, which left that property in Unicode 6.3.
std::unique_ptr<Block> classes_of_block(char32_t first) {
    static const Regex kClasses(
        "(\\p{L}+)|(\\p{N}+)|"
        "([\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"
        "\\x{202f}\\x{205f}\\x{3000}]+)");
    auto block = std::make_unique<Block>();
    block->fill(CharClass::other);
    std::string text;
    for (char32_t c = first; c < first + kBlock; ++c)
        if (c < 0xD800 || c > 0xDFFF) append_code_point(text, c);
    kClasses.replace(text, [&](const Regex::Groups& groups) {
        const CharClass found = !groups[1].empty()   ? CharClass::letter
                                : !groups[2].empty() ? CharClass::number
                                                     : CharClass::space;
        for (size_t at = 0; at < groups[0].size();)
            (*block)[next_code_point(groups[0], at) - first] = found;
        return std::string();
    });
    return block;
}

// Filled as scripts are met, by any thread.
const Block& block_of(char32_t code_point) {
    static std::array<std::atomic<const Block*>, 0x110000 / kBlock> blocks;
    std::atomic<const Block*>& entry = blocks[code_point / kBlock];
    const Block* block = entry.load(std::memory_order_acquire);
    if (block) return *block;
    std::unique_ptr<Block> made = classes_of_block(code_point / kBlock * kBlock);
    if (entry.compare_exchange_strong(block, made.get(), std::memory_order_acq_rel))
        block = made.release();
    return *block;
}

// The class of what begins at `at`; moves `at` past it.
inline CharClass next_class(std::string_view text, size_t& at) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) return ++at, kAscii[lead];
    return class_of(next_code_point(text, at));
}

// 's, 't, 'm, 'd, 're, 've or 'll at an apostrophe: its length, or 0.
size_t contraction_at(std::string_view text, size_t at) {
    const char first = at + 1 < text.size() ? text[at + 1] : '\0';
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    const char second = at + 2 < text.size() ? text[at + 2] : '\0';
    const bool two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                     (first == 'l' && second == 'l');
    return two ? 3 : 0;
}

// The code point that ends the text before `end`, U+FFFD if none does; moves `end` to its start.
char32_t previous_code_point(std::string_view text, size_t& end) {
    size_t begin = end - 1;
    while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
        --begin;
    const std::string_view sequence = text.substr(begin, end - begin);
    size_t used = 0;
    if (is_valid_utf8(sequence)) {
        const char32_t code_point = next_code_point(sequence, used);
        if (used == sequence.size()) return end = begin, code_point;
    }
    return --end, 0xFFFD;
}

}  // namespace

CharClass class_of(char32_t code_point) {
    if (code_point < 0x80) return kAscii[code_point];
    return block_of(code_point)[code_point % kBlock];
}

size_t word_end(std::string_view text, size_t at) {
    if (text[at] == '\'') {
        const size_t length = contraction_at(text, at);
        if (length > 0) return at + length;
    }
    size_t end = at;
    CharClass run = next_class(text, end);
    if (run != CharClass::space || (text[at] == ' ' && end < text.size())) {
        // A word with the one space before it, if there is one.
        const CharClass first = run == CharClass::space ? next_class(text, end) : run;
        if (first != CharClass::space) {
            for (size_t next = end; next < text.size(); end = next)
                if (next_class(text, next) != first) return end;
            return end;
        }
    }
    // White space: all of it at the end of the text, else without the last, which belongs to the
    // next word or, if it cannot, is a word of its own.
    size_t last = at;
    for (size_t next = end = at; next < text.size(); end = next) {
        if (next_class(text, next) != CharClass::space) return last > at ? last : end;
        last = end;
    }
    return end;
}

std::vector<std::string_view> split_words(std::string_view text) {
    std::vector<std::string_view> words;
    for (size_t at = 0; at < text.size();) {
        const size_t end = word_end(text, at);
        words.push_back(text.substr(at, end - at));
        at = end;
    }
    return words;
}

// A word has white space at its front only, and beyond that characters of one class, except for the
// contractions. So it ends wherever a character that is no white space is followed by one of
// another class, unless the first is an apostrophe. What looks further than its own end is white
// space before a word, which such a place is not, and an apostrophe.
size_t last_word_cut(std::string_view text) {
    if (text.empty()) return 0;
    size_t at = text.size();
    // The last bytes may be the beginning of a code point, so the search begins at an ASCII one or
    // one that is whole.
    char32_t after = previous_code_point(text, at);
    while (at > 0) {
        size_t before = at;
        const char32_t code_point = previous_code_point(text, before);
        const CharClass here = class_of(code_point);
        if (here != CharClass::space && code_point != '\'' && code_point != 0xFFFD &&
            after != 0xFFFD && class_of(after) != here)
            return at;
        after = code_point;
        at = before;
    }
    return 0;
}

}  // namespace hark
