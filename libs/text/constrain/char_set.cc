#include "text/constrain/char_set.h"

#include <algorithm>
#include <array>
#include <string>

#include "text/utf8.h"

namespace hark {
namespace {

constexpr char32_t kLastCodePoint = 0x10FFFF;
constexpr CharRange kSurrogates = {0xD800, 0xDFFF};

// Characters that a JSON string has as an escape of two bytes.
constexpr std::array<std::pair<char, char>, 7> kShortEscapes = {
    {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}};

const CharSet& escaped_chars() {
    static const CharSet set({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
    return set;
}

std::string escape_of(char32_t c) {
    for (const auto& [character, letter] : kShortEscapes)
        if (c == static_cast<char32_t>(character)) return {'\\', letter};
    const char* const digits = "0123456789abcdef";
    return {'\\', 'u', '0', '0', digits[c >> 4 & 15], digits[c & 15]};
}

using Utf8Bytes = std::vector<uint8_t>;

Utf8Bytes utf8_of(char32_t c) {
    std::string text;
    append_code_point(text, c);
    return {text.begin(), text.end()};
}

// Adds sequences of byte ranges for the texts of one length from `first` to `last`.
void add_utf8(Grammar& grammar, const Utf8Bytes& first, const Utf8Bytes& last, size_t at,
              std::vector<Grammar::Expr> prefix, std::vector<Grammar::Expr>& out) {
    if (at == first.size()) return out.push_back(grammar.sequence(std::move(prefix)));
    const auto is_least = [&](const Utf8Bytes& bytes) {
        return std::all_of(bytes.begin() + static_cast<ptrdiff_t>(at) + 1, bytes.end(),
                           [](uint8_t b) { return b == 0x80; });
    };
    const auto is_most = [&](const Utf8Bytes& bytes) {
        return std::all_of(bytes.begin() + static_cast<ptrdiff_t>(at) + 1, bytes.end(),
                           [](uint8_t b) { return b == 0xBF; });
    };
    const auto with = [&](int32_t from, int32_t to) {
        std::vector<Grammar::Expr> more = prefix;
        more.push_back(grammar.range(from, to));
        return more;
    };
    int32_t from = first[at], to = last[at];
    if (from == to) return add_utf8(grammar, first, last, at + 1, with(from, to), out);
    Utf8Bytes least(first.size(), 0x80), most(first.size(), 0xBF);
    if (!is_least(first)) add_utf8(grammar, first, most, at + 1, with(from, from), out), ++from;
    const bool cuts = !is_most(last);
    if (cuts) --to;
    if (from <= to) {
        std::vector<Grammar::Expr> more = with(from, to);
        for (size_t i = at + 1; i < first.size(); ++i) more.push_back(grammar.range(0x80, 0xBF));
        out.push_back(grammar.sequence(std::move(more)));
    }
    if (cuts) add_utf8(grammar, least, last, at + 1, with(last[at], last[at]), out);
}

}  // namespace

CharSet::CharSet(std::vector<CharRange> ranges) {
    std::sort(ranges.begin(), ranges.end());
    const auto add = [&](char32_t first, char32_t last) {
        if (first > last) return;
        if (!ranges_.empty() && first <= ranges_.back().last + 1)
            ranges_.back().last = std::max(ranges_.back().last, last);
        else
            ranges_.push_back({first, last});
    };
    for (const auto& [first, last] : ranges) {
        add(first, std::min<char32_t>(last, kSurrogates.first - 1));
        add(std::max<char32_t>(first, kSurrogates.last + 1), std::min(last, kLastCodePoint));
    }
}

const CharSet& CharSet::all() {
    static const CharSet set({{0, kLastCodePoint}});
    return set;
}

bool CharSet::contains(char32_t one) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const CharRange& range) {
        return range.first <= one && one <= range.last;
    });
}

CharSet CharSet::operator|(const CharSet& other) const {
    std::vector<CharRange> ranges = ranges_;
    ranges.insert(ranges.end(), other.ranges_.begin(), other.ranges_.end());
    return CharSet(std::move(ranges));
}

CharSet CharSet::operator&(const CharSet& other) const {
    std::vector<CharRange> ranges;
    for (size_t i = 0, j = 0; i < ranges_.size() && j < other.ranges_.size();) {
        const CharRange &a = ranges_[i], &b = other.ranges_[j];
        const char32_t first = std::max(a.first, b.first), last = std::min(a.last, b.last);
        if (first <= last) ranges.push_back({first, last});
        (a.last < b.last ? i : j) += 1;
    }
    return CharSet(std::move(ranges));
}

CharSet CharSet::operator~() const {
    std::vector<CharRange> ranges;
    char32_t next = 0;
    for (const CharRange& range : ranges_) {
        if (range.first > next) ranges.push_back({next, range.first - 1});
        next = range.last + 1;
    }
    if (next <= kLastCodePoint) ranges.push_back({next, kLastCodePoint});
    return CharSet(std::move(ranges));
}

Grammar::Expr utf8_char(Grammar& grammar, const CharSet& set) {
    std::vector<Grammar::Expr> choices;
    // Where the number of bytes changes.
    constexpr std::array<char32_t, 4> kLengths = {0x7F, 0x7FF, 0xFFFF, kLastCodePoint};
    for (const CharRange& range : set.ranges()) {
        char32_t first = range.first;
        for (const char32_t most : kLengths) {
            if (first > most || first > range.last) continue;
            const char32_t last = std::min(range.last, most);
            add_utf8(grammar, utf8_of(first), utf8_of(last), 0, {}, choices);
            first = last + 1;
        }
    }
    return grammar.choice(std::move(choices));
}

Grammar::Expr json_char(Grammar& grammar, const CharSet& set) {
    std::vector<Grammar::Expr> choices = {utf8_char(grammar, set - escaped_chars())};
    const CharSet escaped = set & escaped_chars();
    for (const CharRange& range : escaped.ranges())
        for (char32_t c = range.first; c <= range.last; ++c)
            choices.push_back(grammar.text(escape_of(c)));
    return grammar.choice(std::move(choices));
}

Grammar::Expr any_json_char(Grammar& grammar) {
    const auto one_of = [&](const std::vector<CharRange>& ranges) {
        return utf8_char(grammar, CharSet(ranges));
    };
    const Grammar::Expr hex = one_of({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
    const auto code = [&](Grammar::Expr first, Grammar::Expr second) {
        return grammar.sequence({grammar.text("\\u"), first, second, hex, hex});
    };
    const Grammar::Expr not_d =
        one_of({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});
    const Grammar::Expr d = one_of({{'D', 'D'}, {'d', 'd'}});
    const Grammar::Expr high = one_of({{'8', '9'}, {'A', 'B'}, {'a', 'b'}});
    const Grammar::Expr low = one_of({{'C', 'F'}, {'c', 'f'}});
    std::vector<CharRange> letters = {{'/', '/'}};
    for (const auto& [character, letter] : kShortEscapes)
        letters.push_back({static_cast<char32_t>(letter), static_cast<char32_t>(letter)});
    return grammar.choice({utf8_char(grammar, ~escaped_chars()),
                           grammar.sequence({grammar.text("\\"), one_of(letters)}),
                           code(not_d, hex), code(d, one_of({{'0', '7'}})),
                           grammar.sequence({code(d, high), code(d, low)})});
}

std::string json_spelling(std::string_view text) {
    std::string spelled = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (escaped_chars().contains(byte))
            spelled += escape_of(byte);
        else
            spelled += c;
    }
    return spelled + '"';
}

}  // namespace hark
