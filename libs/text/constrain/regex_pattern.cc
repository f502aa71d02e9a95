#include "text/constrain/regex_pattern.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/error.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark {
namespace {

constexpr int kDeepestGroups = 100;
constexpr int64_t kMostRegexCount = 10'000;
constexpr size_t kMostPatternBytes = size_t{64} << 10;

const CharSet& ascii_digits() {
    static const CharSet set({{'0', '9'}});
    return set;
}
const CharSet& word_chars() {
    static const CharSet set({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
    return set;
}
const CharSet& regex_spaces() {
    static const CharSet set({{0x9, 0xD},
                              {0x20, 0x20},
                              {0xA0, 0xA0},
                              {0x1680, 0x1680},
                              {0x2000, 0x200A},
                              {0x2028, 0x2029},
                              {0x202F, 0x202F},
                              {0x205F, 0x205F},
                              {0x3000, 0x3000},
                              {0xFEFF, 0xFEFF}});
    return set;
}
const CharSet& line_ends() {
    static const CharSet set({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
    return set;
}

// A set per letter of kCategories: all code points are looked at once.
constexpr std::u32string_view kCategories = U"LMNPSZC";

std::vector<CharSet> all_categories() {
    std::array<std::vector<CharRange>, 128> ranges;  // per letter
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
        std::vector<CharRange>& own = ranges[static_cast<size_t>(category_class(c))];
        if (!own.empty() && own.back().last + 1 == c)
            own.back().last = c;
        else
            own.push_back({c, c});
    }
    std::vector<CharSet> sets;
    for (const char32_t letter : kCategories) sets.emplace_back(std::move(ranges[letter]));
    return sets;
}

const CharSet& category(size_t index) {
    static const std::vector<CharSet> sets = all_categories();
    return sets[index];
}

class RegexParser {
  public:
    explicit RegexParser(std::string_view pattern) : text_(to_code_points(pattern)) {}

    Regular parse() {
        Regular all = alternatives(0);
        if (at_ < text_.size()) wrong("')' without '('");
        return all;
    }

  private:
    [[noreturn]] void wrong(const std::string& what) const {
        fail("regular expression: ", what, " (at character ", at_ + 1, " of '", to_utf8(text_),
             "')");
    }
    bool has(char32_t c) const { return at_ < text_.size() && text_[at_] == c; }
    bool has(std::u32string_view s) const {
        return std::u32string_view(text_).substr(at_).starts_with(s);
    }
    bool take(char32_t c) { return has(c) && ++at_; }
    bool take(std::u32string_view s) { return has(s) && (at_ += s.size()); }

    Regular alternatives(int depth) {
        if (depth > kDeepestGroups) wrong(concat("groups nested deeper than ", kDeepestGroups));
        std::vector<Regular> choices;
        do choices.push_back(sequence(depth));
        while (take(U'|'));
        return choices.size() == 1 ? choices[0] : Regular::choice(std::move(choices));
    }

    Regular sequence(int depth) {
        std::vector<Regular> parts;
        while (at_ < text_.size() && !has(U'|') && !has(U')')) parts.push_back(quantified(depth));
        return Regular::sequence(std::move(parts));
    }

    Regular quantified(int depth) {
        const size_t begin = at_;
        Regular part = atom(depth);
        const bool repeats = has(U'*') || has(U'+') || has(U'?') || has(U'{');
        if (repeats && (part.kind() == Regular::Kind::begin || part.kind() == Regular::Kind::end))
            wrong("nothing to repeat");
        int64_t least = 1, most = 1;
        if (take(U'*'))
            least = 0, most = kUnlimited;
        else if (take(U'+'))
            most = kUnlimited;
        else if (take(U'?'))
            least = 0;
        else if (take(U'{'))
            read_counts(least, most);
        if (at_ == begin || !repeats) return part;
        take(U'?');  // a lazy one has the same texts
        if (has(U'+')) wrong("possessive quantifiers are not supported");
        if (has(U'*') || has(U'?') || has(U'{')) wrong("a quantifier after a quantifier");
        return Regular::repeat(std::move(part), least, most);
    }

    void read_counts(int64_t& least, int64_t& most) {
        const auto number = [&] {
            if (at_ >= text_.size() || !ascii_digits().contains(text_[at_]))
                wrong("expected {m}, {m,} or {m,n}");
            int64_t value = 0;
            for (; at_ < text_.size() && ascii_digits().contains(text_[at_]); ++at_)
                value = std::min<int64_t>(value * 10 + (text_[at_] - U'0'), kMostRegexCount + 1);
            if (value > kMostRegexCount) wrong(concat("a count above ", kMostRegexCount));
            return value;
        };
        least = most = number();
        if (take(U',')) most = has(U'}') ? kUnlimited : number();
        if (!take(U'}')) wrong("expected {m}, {m,} or {m,n}");
        if (most != kUnlimited && most < least) wrong("a quantifier's counts are out of order");
    }

    Regular atom(int depth) {
        if (take(U'(')) return group(depth);
        if (take(U'^')) return Regular::begin();
        if (take(U'$')) return Regular::end();
        if (take(U'.')) return Regular::chars(~line_ends());
        if (take(U'[')) return Regular::chars(char_class());
        if (take(U'\\')) return Regular::chars(escape(false));
        for (const char32_t c : {U'*', U'+', U'?', U'{'})
            if (has(c)) wrong("nothing to repeat");
        for (const char32_t c : {U']', U'}'})
            if (has(c))
                wrong(concat("'", to_utf8({&c, 1}), "' without its begin; write \\ before it"));
        return Regular::chars(CharSet::of(text_[at_++]));
    }

    Regular group(int depth) {
        if (has(U"?=") || has(U"?!")) wrong("lookahead is not supported");
        if (has(U"?<=") || has(U"?<!")) wrong("lookbehind is not supported");
        if (take(U"?<") || take(U"?P<")) {
            while (at_ < text_.size() && !has(U'>')) ++at_;
            if (!take(U'>')) wrong("a group's name without '>'");
        } else if (has(U'?') && !take(U"?:")) {
            wrong("flags and other (?...) groups are not supported");
        }
        Regular inside = alternatives(depth + 1);
        if (!take(U')')) wrong("'(' without ')'");
        return inside;
    }

    CharSet char_class() {
        const bool negates = take(U'^');
        std::vector<CharRange> ranges;
        const auto add = [&](const CharSet& set) {
            ranges.insert(ranges.end(), set.ranges().begin(), set.ranges().end());
        };
        while (!has(U']')) {
            if (at_ >= text_.size()) wrong("'[' without ']'");
            const CharSet first = class_part();
            const bool is_range = has(U'-') && at_ + 1 < text_.size() && text_[at_ + 1] != U']';
            if (!is_range) {
                add(first);
                continue;
            }
            ++at_;
            const CharSet last = class_part();
            const auto is_one = [](const CharSet& s) {
                return s.ranges().size() == 1 && s.ranges()[0].first == s.ranges()[0].last;
            };
            if (!is_one(first) || !is_one(last)) wrong("a range of classes");
            const char32_t from = first.ranges()[0].first, to = last.ranges()[0].first;
            if (from > to) wrong("a range that is out of order");
            ranges.push_back({from, to});
        }
        ++at_;
        const CharSet set(std::move(ranges));
        return negates ? ~set : set;
    }

    CharSet class_part() {
        if (at_ >= text_.size()) wrong("'[' without ']'");
        if (take(U'\\')) return escape(true);
        return CharSet::of(text_[at_++]);
    }

    // What follows a backslash.
    CharSet escape(bool in_class) {
        if (at_ >= text_.size()) wrong("a backslash at the end");
        const char32_t c = text_[at_++];
        switch (c) {
            case U'd':
                return ascii_digits();
            case U'D':
                return ~ascii_digits();
            case U'w':
                return word_chars();
            case U'W':
                return ~word_chars();
            case U's':
                return regex_spaces();
            case U'S':
                return ~regex_spaces();
            case U't':
                return CharSet::of(U'\t');
            case U'n':
                return CharSet::of(U'\n');
            case U'r':
                return CharSet::of(U'\r');
            case U'f':
                return CharSet::of(U'\f');
            case U'v':
                return CharSet::of(U'\v');
            case U'0':
                return CharSet::of(0);
            case U'x':
                return CharSet::of(hex(2));
            case U'u':
                return CharSet::of(unicode());
            case U'p':
                return property();
            case U'P':
                return ~property();
            case U'k':
                wrong("back references are not supported");
            case U'b':
                if (in_class) return CharSet::of(U'\b');
                [[fallthrough]];
            case U'B':
                wrong("word boundaries (\\b, \\B) are not supported");
            case U'c':
                if (at_ < text_.size() && category_class(text_[at_]) == 'L' && text_[at_] < 128)
                    return CharSet::of(text_[at_++] % 32);
                wrong("expected a letter after \\c");
            default:
                break;
        }
        if (c >= U'1' && c <= U'9') wrong("back references are not supported");
        if (word_chars().contains(c))
            wrong(concat("the escape \\", to_utf8({&c, 1}), " is unknown"));
        return CharSet::of(c);
    }

    char32_t hex(int places) {
        char32_t value = 0;
        for (int i = 0; i < places; ++i) {
            const char32_t c = at_ < text_.size() ? text_[at_++] : U' ';
            const std::u32string_view kDigits = U"0123456789abcdefABCDEF";
            const size_t digit = kDigits.find(c);
            if (digit == kDigits.npos) wrong(concat("expected ", places, " hexadecimal digits"));
            value = value * 16 + static_cast<char32_t>(digit < 16 ? digit : digit - 6);
        }
        return value;
    }

    // \uHHHH, a pair of them, or \u{H...}.
    char32_t unicode() {
        if (take(U'{')) {
            const size_t end = text_.find(U'}', at_);
            if (end == text_.npos || end == at_ || end - at_ > 6)
                wrong("expected \\u{1 to 6 digits}");
            const char32_t value = hex(static_cast<int>(end - at_));
            ++at_;
            if (CharSet::of(value).empty()) wrong("expected a code point in \\u{...}");
            return value;
        }
        char32_t value = hex(4);
        if (value >= 0xD800 && value < 0xDC00 && take(U"\\u")) {
            const char32_t low = hex(4);
            if (low < 0xDC00 || low > 0xDFFF) wrong("half of a surrogate pair");
            value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
        }
        if (CharSet::of(value).empty()) wrong("half of a surrogate pair");
        return value;
    }

    // \p{L}: a general category's first letter.
    CharSet property() {
        const bool has_letter = take(U'{') && at_ < text_.size();
        const size_t index = has_letter ? kCategories.find(text_[at_++]) : kCategories.npos;
        if (index == kCategories.npos || !take(U'}'))
            wrong("only \\p{L}, {M}, {N}, {P}, {S}, {Z} and {C} are supported");
        return category(index);
    }

    std::u32string text_;
    size_t at_ = 0;
};

}  // namespace

Regular parse_regex(std::string_view pattern) {
    require(pattern.size() <= kMostPatternBytes, "regular expression: too long (got ",
            pattern.size(), " bytes, expected at most ", kMostPatternBytes, ")");
    return RegexParser(replace_invalid(pattern)).parse();
}

CharAutomaton whole_match(std::string_view pattern) { return CharAutomaton(parse_regex(pattern)); }

CharAutomaton any_match(std::string_view pattern) {
    return CharAutomaton(Regular::containing(parse_regex(pattern)));
}

}  // namespace hark
