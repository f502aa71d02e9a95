// Methods of str that return one string or a number.
#include "core/error.h"
#include "text/jinja/case.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/jinja/operations.h"
#include "text/jinja/str_format.h"
#include "text/jinja/text_tools.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

template <Text (*map)(const Text&)>
Value mapped_method(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("the method", args, {});
    return in.text(map(*self.text()));
}

template <bool left, bool right>
Value stripped_method(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("strip", args, {"chars"});
    return in.text(strip(*self.text(), bound.some(0) ? &bound.text(0) : nullptr, left, right));
}

Value replace_method(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("replace", args, {"old", "new", "count"}, 2);
    const int64_t count_of_text = bound.integer(2, -1);
    return in.text(replaced(*self.text(), bound.text(0), bound.text(1), count_of_text));
}

Value join_method(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("join", args, {"iterable"}, 1);
    const Next next = iterate(in, *bound[0]);
    Text joined;
    Value item;
    for (bool is_first = true; next(item); is_first = false) {
        require(item.text(), "join: expected str instance, ", type_name(item), " found");
        if (!is_first) joined.append(*self.text());
        joined.append(*item.text());
    }
    return in.text(std::move(joined));
}

template <Side side>
Value justify(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("justify", args, {"width", "fillchar"}, 1);
    const Text fill = bound[1] ? bound.text(1) : Text(" ");
    require(count_code_points(fill.bytes()) == 1,
            "The fill character must be exactly one character long");
    return in.text(justified(*self.text(), bound.integer(0, 0), fill, side));
}

Value zero_fill(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("zfill", args, {"width"}, 1);
    const Text& text = *self.text();
    const bool has_sign = !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+');
    const size_t skip = has_sign ? 1 : 0;
    Text result = text.slice(0, skip);
    result.append(justified(text.slice(skip, text.size()),
                            bound.integer(0, 0) - static_cast<int64_t>(skip), Text("0"),
                            Side::right));
    return in.text(std::move(result));
}

template <bool prefix>
Value remove_affix(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("removeprefix", args, {"affix"}, 1);
    const Text& text = *self.text();
    const std::string& affix = bound.text(0).bytes();
    const bool matches = prefix ? text.bytes().starts_with(affix) : text.bytes().ends_with(affix);
    if (!matches) return self;
    return in.text(prefix ? text.slice(affix.size(), text.size())
                          : text.slice(0, text.size() - affix.size()));
}

Value format_method(Interpreter& in, const Value& self, Args& args) {
    return in.text(str_format(in, *self.text(), args));
}

// Bytes of text[start:end], the part that a search sees; nullopt if start is beyond the end.
std::optional<ByteRange> searched(const Text& text, const Bound& bound, size_t first) {
    const auto offsets = code_point_offsets(text.bytes());
    const auto size = static_cast<int64_t>(offsets.size()) - 1;
    const auto place = [&](size_t i, int64_t otherwise) {
        if (!bound.some(i)) return otherwise;
        const int64_t at = bound.integer(i, otherwise);
        return at < 0 ? std::max<int64_t>(at < -size ? 0 : at + size, 0) : at;
    };
    const int64_t begin = place(first, 0), end = std::min(place(first + 1, size), size);
    if (begin > end) return std::nullopt;
    return ByteRange{offsets[static_cast<size_t>(begin)], offsets[static_cast<size_t>(end)]};
}

template <bool from_right, bool must_exist>
Value find(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("find", args, {"sub", "start", "end"}, 1);
    const Text& text = *self.text();
    in.charge_bytes(text.size());
    const auto range = searched(text, bound, 1);
    size_t found = std::string_view::npos;
    if (range) {
        const auto part =
            std::string_view(text.bytes()).substr(range->begin, range->end - range->begin);
        found = from_right ? find_last_bytes(part, bound.text(0).bytes())
                           : find_bytes(part, bound.text(0).bytes(), 0);
    }
    const bool exists = found != std::string_view::npos;
    require(exists || !must_exist, "substring not found");
    if (!exists) return int64_t{-1};
    return static_cast<int64_t>(
        count_code_points(std::string_view(text.bytes()).substr(0, range->begin + found)));
}

Value count_of_text(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("count", args, {"sub", "start", "end"}, 1);
    const Text& text = *self.text();
    in.charge_bytes(text.size());
    const auto range = searched(text, bound, 1);
    if (!range) return int64_t{0};
    const auto part =
        std::string_view(text.bytes()).substr(range->begin, range->end - range->begin);
    const std::string& wanted = bound.text(0).bytes();
    if (wanted.empty()) return static_cast<int64_t>(count_code_points(part)) + 1;
    int64_t found = 0;
    for (size_t at = find_bytes(part, wanted, 0); at != part.npos;
         at = find_bytes(part, wanted, at + wanted.size()))
        ++found;
    return found;
}

template <bool at_begin>
Value starts(Interpreter&, const Value& self, Args& args) {
    const Bound bound("startswith", args, {"prefix", "start", "end"}, 1);
    const auto range = searched(*self.text(), bound, 1);
    if (!range) return false;
    const auto part =
        std::string_view(self.text()->bytes()).substr(range->begin, range->end - range->begin);
    const auto matches = [&](const Value& affix) {
        require(affix.text(), "startswith takes a str or a tuple of str, not ", type_name(affix));
        const std::string& wanted = affix.text()->bytes();
        return at_begin ? part.starts_with(wanted) : part.ends_with(wanted);
    };
    const Tuple* choices = bound[0]->tuple();
    if (!choices) return matches(*bound[0]);
    for (const Value& choice : choices->items)
        if (matches(choice)) return true;
    return false;
}

}  // namespace

Method find_text_method(std::string_view name) {
    static constexpr Named<Method> kMethods[] = {
        {"capitalize", mapped_method<capitalize>},
        {"center", justify<Side::center>},
        {"count", count_of_text},
        {"endswith", starts<false>},
        {"find", find<false, false>},
        {"format", format_method},
        {"index", find<false, true>},
        {"join", join_method},
        {"ljust", justify<Side::left>},
        {"lower", mapped_method<lower>},
        {"lstrip", stripped_method<true, false>},
        {"removeprefix", remove_affix<true>},
        {"removesuffix", remove_affix<false>},
        {"replace", replace_method},
        {"rfind", find<true, false>},
        {"rindex", find<true, true>},
        {"rjust", justify<Side::right>},
        {"rstrip", stripped_method<false, true>},
        {"startswith", starts<true>},
        {"strip", stripped_method<true, true>},
        {"swapcase", mapped_method<swap_case>},
        {"title", mapped_method<title>},
        {"upper", mapped_method<upper>},
        {"zfill", zero_fill},
    };
    return find_named(kMethods, name);
}

}  // namespace hark::jinja
