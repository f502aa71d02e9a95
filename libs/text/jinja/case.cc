#include "text/jinja/case.h"

#include <utf8proc.h>

#include <algorithm>

#include "core/ascii.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

struct SpecialCase {
    char32_t code_point;
    std::string_view upper, title;
};
constexpr SpecialCase kSpecialCases[] = {
#include "text/jinja/special_casing.inc"
};

const SpecialCase* special_case(char32_t code_point) {
    const auto* found = std::lower_bound(
        std::begin(kSpecialCases), std::end(kSpecialCases), code_point,
        [](const SpecialCase& row, char32_t wanted) { return row.code_point < wanted; });
    const bool matches = found != std::end(kSpecialCases) && found->code_point == code_point;
    return matches ? found : nullptr;
}

std::string upper_of(char32_t code_point, bool is_title) {
    if (const SpecialCase* row = special_case(code_point))
        return std::string(is_title ? row->title : row->upper);
    std::string text;
    append_code_point(
        text, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code_point))));
    return text;
}

std::string lower_of(std::string_view letter) {
    if (letter.size() > 1) return lower_case(letter);
    return ascii_lower(letter);
}

enum class Case { none, lower, upper, title };

Case case_of(char32_t code_point) {
    if (code_point == 0xAA || code_point == 0xBA) return Case::lower;
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
        case UTF8PROC_CATEGORY_LU:
            return Case::upper;
        case UTF8PROC_CATEGORY_LL:
            return Case::lower;
        case UTF8PROC_CATEGORY_LT:
            return Case::title;
        default:
            return Case::none;
    }
}

// Maps each letter by f(code point, its index of bytes, its lower case).
template <class F>
Text map_letters(const Text& text, F&& f) {
    const std::string& bytes = text.bytes();
    // Lower case depends on the neighbours (the final sigma), but its length does not.
    const std::string low = lower_case(bytes);
    Text result;
    size_t low_at = 0;
    for (size_t at = 0; at < bytes.size();) {
        const size_t begin = at;
        const char32_t code_point = next_code_point(bytes, at);
        const size_t low_size = lower_of(std::string_view(bytes).substr(begin, at - begin)).size();
        result.append(f(code_point, begin, std::string_view(low).substr(low_at, low_size)),
                      text.is_input(begin));
        low_at += low_size;
    }
    result.is_markup = text.is_markup;
    return result;
}

bool is_all(std::string_view text, Case wanted, Case other) {
    bool any = false;
    for (size_t at = 0; at < text.size();) {
        const Case found = case_of(next_code_point(text, at));
        if (found == other || found == Case::title) return false;
        any |= found == wanted;
    }
    return any;
}

bool is_line_end(char32_t code_point) {
    return (code_point >= 0x0A && code_point <= 0x0D) ||
           (code_point >= 0x1C && code_point <= 0x1E) || code_point == 0x85 ||
           code_point == 0x2028 || code_point == 0x2029;
}

}  // namespace

Text lower(const Text& text) {
    return map_letters(text,
                       [](char32_t, size_t, std::string_view low) { return std::string(low); });
}

Text upper(const Text& text) {
    return map_letters(text, [](char32_t code_point, size_t, std::string_view) {
        return upper_of(code_point, false);
    });
}

Text capitalize(const Text& text) {
    return map_letters(text, [](char32_t code_point, size_t at, std::string_view low) {
        return at == 0 ? upper_of(code_point, true) : std::string(low);
    });
}

Text title(const Text& text) {
    bool inside = false;
    return map_letters(text, [&](char32_t code_point, size_t, std::string_view low) {
        const bool was_inside = inside;
        inside = case_of(code_point) != Case::none;
        return was_inside ? std::string(low) : upper_of(code_point, true);
    });
}

Text swap_case(const Text& text) {
    return map_letters(text, [](char32_t code_point, size_t, std::string_view low) {
        return case_of(code_point) == Case::upper ? std::string(low) : upper_of(code_point, false);
    });
}

// Each word apart, as the filter does it: a final sigma depends on its own word's rest.
Text title_filter(const Text& text) {
    const std::string& bytes = text.bytes();
    const auto ends_word = [](char32_t code_point) {
        return is_space(code_point) || code_point == '-' || code_point == '(' ||
               code_point == '{' || code_point == '[' || code_point == '<';
    };
    Text result;
    for (size_t at = 0; at < bytes.size();) {
        const size_t begin = at;
        const bool is_gap = ends_word(next_code_point(bytes, at));
        const size_t rest = at;
        for (size_t next = at; next < bytes.size(); at = next)
            if (ends_word(next_code_point(bytes, next)) != is_gap) break;
        result.append(upper(text.slice(begin, rest)));
        result.append(lower(text.slice(rest, at)));
    }
    result.is_markup = text.is_markup;
    return result;
}

bool is_lower(std::string_view text) { return is_all(text, Case::lower, Case::upper); }

bool is_upper(std::string_view text) { return is_all(text, Case::upper, Case::lower); }

bool is_title(std::string_view text) {
    bool any = false, inside = false;
    for (size_t at = 0; at < text.size();) {
        const Case found = case_of(next_code_point(text, at));
        const bool begins = found == Case::upper || found == Case::title;
        if (begins ? inside : found == Case::lower && !inside) return false;
        inside = found != Case::none;
        any |= inside;
    }
    return any;
}

Text strip(const Text& text, const Text* characters, bool left, bool right) {
    const std::string& bytes = text.bytes();
    std::u32string set = characters ? to_code_points(characters->bytes()) : std::u32string();
    std::sort(set.begin(), set.end());
    const auto strips = [&](char32_t code_point) {
        return characters ? std::binary_search(set.begin(), set.end(), code_point)
                          : is_space(code_point);
    };
    size_t begin = 0, end = bytes.size();
    while (left && begin < end) {
        size_t next = begin;
        if (!strips(next_code_point(bytes, next))) break;
        begin = next;
    }
    while (right && end > begin) {
        size_t last = end - 1;
        while (last > begin && (static_cast<unsigned char>(bytes[last]) & 0xC0) == 0x80) --last;
        size_t next = last;
        if (!strips(next_code_point(bytes, next))) break;
        end = last;
    }
    return text.slice(begin, end);
}

std::vector<ByteRange> line_ranges(std::string_view text, bool keep_ends) {
    std::vector<ByteRange> lines;
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = at;
        const char32_t code_point = next_code_point(text, at);
        if (!is_line_end(code_point)) continue;
        if (code_point == '\r' && at < text.size() && text[at] == '\n') ++at;
        lines.push_back({begin, keep_ends ? at : end});
        begin = at;
    }
    if (begin < text.size()) lines.push_back({begin, text.size()});
    return lines;
}

std::vector<ByteRange> word_ranges(std::string_view text, int64_t most, bool from_right) {
    std::vector<ByteRange> words;
    for (const std::string_view word : words_of(text)) {
        const auto begin = static_cast<size_t>(word.data() - text.data());
        words.push_back({begin, begin + word.size()});
    }
    if (most < 0 || words.size() <= static_cast<size_t>(most)) return words;
    const auto cuts = static_cast<size_t>(most);
    // What is left keeps its inner white space, and its outer one on the side away from the cuts.
    if (from_right) {
        const size_t end = words[words.size() - 1 - cuts].end;
        words.erase(words.begin(), words.end() - static_cast<ptrdiff_t>(cuts));
        words.insert(words.begin(), {0, end});
    } else {
        words.resize(cuts + 1);
        words.back().end = text.size();
    }
    return words;
}

}  // namespace hark::jinja
