#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/error.h"
#include "text/utf8.h"

namespace hark {
namespace {

constexpr char32_t kCapitalSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;
constexpr char32_t kCapitalDottedI = 0x130, kDotAbove = 0x307;

utf8proc_category_t category(char32_t c) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool between(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

// The property Cased: the categories of letters with case, and Other_Uppercase and Other_Lowercase
// outside of category Lm (whose members are all case-ignorable). Source: PropList.txt.
bool is_cased(char32_t c) {
    switch (category(c)) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
            return true;
        default:
            return c == 0xAA || c == 0xBA || between(c, 0x2160, 0x217F) ||
                   between(c, 0x24B6, 0x24E9) || between(c, 0x1F130, 0x1F149) ||
                   between(c, 0x1F150, 0x1F169) || between(c, 0x1F170, 0x1F189);
    }
}

// The property Case_Ignorable: categories, and the word breaks MidLetter, MidNumLet and
// Single_Quote (WordBreakProperty.txt).
bool is_case_ignorable(char32_t c) {
    switch (category(c)) {
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_SK:
            return true;
        default:
            static constexpr std::u32string_view kMiddles =
                U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07"
                U"\uFF0E\uFF1A";
            return kMiddles.find(c) != kMiddles.npos;
    }
}

bool ends_a_word(std::u32string_view text, size_t at) {
    size_t before = at;
    while (before > 0 && is_case_ignorable(text[before - 1])) --before;
    if (before == 0 || !is_cased(text[before - 1])) return false;
    size_t after = at + 1;
    while (after < text.size() && is_case_ignorable(text[after])) ++after;
    return after == text.size() || !is_cased(text[after]);
}

std::string normal_form(std::string_view text, int options) {
    // No control character is among most texts' bytes over 0x7F: ASCII is its own normal form.
    const auto ascii = [](char byte) { return static_cast<unsigned char>(byte) < 0x80; };
    if (std::all_of(text.begin(), text.end(), ascii)) return std::string(text);
    utf8proc_uint8_t* made = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &made,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, std::free);
    require(size >= 0, "cannot normalise text: ", utf8proc_errmsg(size));
    return {reinterpret_cast<const char*>(made), static_cast<size_t>(size)};
}

}  // namespace

std::u32string to_code_points(std::string_view text) {
    std::u32string code_points;
    code_points.reserve(text.size());
    for (size_t at = 0; at < text.size();) code_points.push_back(next_code_point(text, at));
    return code_points;
}

std::string to_utf8(std::u32string_view code_points) {
    std::string text;
    text.reserve(code_points.size());
    for (char32_t c : code_points) append_code_point(text, c);
    return text;
}

std::string lower_case(std::string_view text) {
    const std::u32string code_points = to_code_points(text);
    std::string lower;
    lower.reserve(text.size());
    for (size_t i = 0; i < code_points.size(); ++i) {
        const char32_t c = code_points[i];
        if (c == kCapitalSigma) {
            append_code_point(lower, ends_a_word(code_points, i) ? kFinalSigma : kSmallSigma);
        } else if (c == kCapitalDottedI) {
            append_code_point(lower, U'i');
            append_code_point(lower, kDotAbove);
        } else {
            append_code_point(
                lower, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
        }
    }
    return lower;
}

std::string nfkd(std::string_view text) {
    return normal_form(text, UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE);
}
std::string nfkc(std::string_view text) {
    return normal_form(text, UTF8PROC_COMPAT | UTF8PROC_COMPOSE);
}
std::string nfd(std::string_view text) { return normal_form(text, UTF8PROC_DECOMPOSE); }
std::string nfc(std::string_view text) { return normal_form(text, UTF8PROC_COMPOSE); }

char category_class(char32_t code_point) {
    return utf8proc_category_string(static_cast<utf8proc_int32_t>(code_point))[0];
}

bool is_nonspacing_mark(char32_t code_point) {
    return category(code_point) == UTF8PROC_CATEGORY_MN;
}

bool is_space(char32_t c) {
    return between(c, 0x9, 0xD) || between(c, 0x1C, 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || between(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

int digit_value(char32_t c) {
    if (c < 0x80) return between(c, U'0', U'9') ? static_cast<int>(c - U'0') : -1;
    if (category(c) != UTF8PROC_CATEGORY_ND) return -1;
    // The digits of a script follow one another from zero on (The Unicode Standard, section 4.6);
    // several sets of ten may touch.
    char32_t zero = c;
    while (category(zero - 1) == UTF8PROC_CATEGORY_ND) --zero;
    return static_cast<int>((c - zero) % 10);
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t here = at;
        if (!is_space(next_code_point(text, at))) continue;
        if (here > begin) words.push_back(text.substr(begin, here - begin));
        begin = at;
    }
    if (begin < text.size()) words.push_back(text.substr(begin));
    return words;
}

std::vector<std::string_view> grapheme_clusters(std::string_view text) {
    std::vector<std::string_view> clusters;
    utf8proc_int32_t state = 0, before = 0;
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t here = at;
        const auto c = static_cast<utf8proc_int32_t>(next_code_point(text, at));
        if (here > 0 && utf8proc_grapheme_break_stateful(before, c, &state)) {
            clusters.push_back(text.substr(begin, here - begin));
            begin = here;
        }
        before = c;
    }
    if (begin < text.size()) clusters.push_back(text.substr(begin));
    return clusters;
}

int display_width(std::string_view text) {
    constexpr char32_t kEmojiStyle = 0xFE0F;  // makes a narrow symbol a wide picture
    int width = 0;
    for (std::string_view cluster : grapheme_clusters(text)) {
        int columns = 0;
        for (size_t at = 0; at < cluster.size();) {
            const char32_t c = next_code_point(cluster, at);
            columns += c == kEmojiStyle ? 1 : utf8proc_charwidth(static_cast<utf8proc_int32_t>(c));
        }
        width += std::min(columns, 2);
    }
    return width;
}

}  // namespace hark
