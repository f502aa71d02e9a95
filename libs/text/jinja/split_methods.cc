// Methods of str that cut it, and those that ask about its characters.
#include <algorithm>

#include "core/error.h"
#include "text/jinja/case.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

Value parts(Interpreter& in, const Text& text, const std::vector<ByteRange>& ranges) {
    Items items;
    for (const auto [begin, end] : ranges) items.push_back(in.text(text.slice(begin, end)));
    return in.list(std::move(items));
}

std::vector<ByteRange> cut(const std::string& text, const std::string& separator, int64_t most) {
    std::vector<ByteRange> ranges;
    size_t begin = 0;
    for (; most != 0; --most) {
        const size_t found = find_bytes(text, separator, begin);
        if (found == text.npos) break;
        ranges.push_back({begin, found});
        begin = found + separator.size();
    }
    ranges.push_back({begin, text.size()});
    return ranges;
}

// From the right: the cuts of the reversed text, turned round.
std::vector<ByteRange> cut_from_right(const std::string& text, const std::string& separator,
                                      int64_t most) {
    auto ranges = cut({text.rbegin(), text.rend()}, {separator.rbegin(), separator.rend()}, most);
    for (ByteRange& range : ranges) range = {text.size() - range.end, text.size() - range.begin};
    std::reverse(ranges.begin(), ranges.end());
    return ranges;
}

template <bool from_right>
Value split(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("split", args, {"sep", "maxsplit"});
    const Text& text = *self.text();
    in.charge_bytes(text.size());
    const int64_t most = bound.integer(1, -1);
    if (!bound.some(0)) return parts(in, text, word_ranges(text.bytes(), most, from_right));
    const std::string& separator = bound.text(0).bytes();
    require(!separator.empty(), "empty separator");
    return parts(in, text,
                 from_right ? cut_from_right(text.bytes(), separator, most)
                            : cut(text.bytes(), separator, most));
}

Value split_lines(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("splitlines", args, {"keepends"});
    return parts(in, *self.text(), line_ranges(self.text()->bytes(), bound.flag(0)));
}

template <bool from_right>
Value partition(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("partition", args, {"sep"}, 1);
    const Text& text = *self.text();
    const Text& separator = bound.text(0);
    require(!separator.empty(), "empty separator");
    const size_t found = from_right ? find_last_bytes(text.bytes(), separator.bytes())
                                    : find_bytes(text.bytes(), separator.bytes(), 0);
    if (found == std::string::npos)
        return from_right ? in.tuple({in.text(""), in.text(""), self})
                          : in.tuple({self, in.text(""), in.text("")});
    return in.tuple({in.text(text.slice(0, found)), in.text(separator),
                     in.text(text.slice(found + separator.size(), text.size()))});
}

// Whether the text has code points, and f holds for all.
template <bool (*f)(char32_t)>
Value all(Interpreter&, const Value& self, Args&) {
    const std::string& bytes = self.text()->bytes();
    bool holds = !bytes.empty();
    for (size_t at = 0; holds && at < bytes.size();) holds = f(next_code_point(bytes, at));
    return holds;
}

bool is_letter(char32_t code_point) { return category_class(code_point) == 'L'; }
bool is_decimal(char32_t code_point) { return digit_value(code_point) >= 0; }
bool is_numeric(char32_t code_point) { return category_class(code_point) == 'N'; }
// Decimals, and the superscripts and circled digits of Python's isdigit that are common.
bool is_digit_of_text(char32_t code_point) {
    return is_decimal(code_point) || code_point == 0xB2 || code_point == 0xB3 ||
           code_point == 0xB9 || (code_point >= 0x2070 && code_point <= 0x2089) ||
           (code_point >= 0x2460 && code_point <= 0x2468);
}
bool is_alphanumeric(char32_t code_point) {
    return is_letter(code_point) || is_numeric(code_point);
}

template <bool (*f)(std::string_view)>
Value cased(Interpreter&, const Value& self, Args&) {
    return f(self.text()->bytes());
}

Value is_ascii(Interpreter&, const Value& self, Args&) {
    const std::string& bytes = self.text()->bytes();
    return std::all_of(bytes.begin(), bytes.end(),
                       [](char letter) { return static_cast<unsigned char>(letter) < 0x80; });
}

}  // namespace

Method find_split_method(std::string_view name) {
    static constexpr Named<Method> kMethods[] = {
        {"partition", partition<false>}, {"rpartition", partition<true>}, {"rsplit", split<true>},
        {"split", split<false>},         {"splitlines", split_lines},
    };
    return find_named(kMethods, name);
}

Method find_predicate_method(std::string_view name) {
    static constexpr Named<Method> kMethods[] = {
        {"isalnum", all<is_alphanumeric>},
        {"isalpha", all<is_letter>},
        {"isascii", is_ascii},
        {"isdecimal", all<is_decimal>},
        {"isdigit", all<is_digit_of_text>},
        {"islower", cased<is_lower>},
        {"isnumeric", all<is_numeric>},
        {"isspace", all<is_space>},
        {"istitle", cased<is_title>},
        {"isupper", cased<is_upper>},
    };
    return find_named(kMethods, name);
}

}  // namespace hark::jinja
