// Filters of texts: jinja2 3.1.6, filters.py; tojson is transformers'.
#include "core/error.h"
#include "text/jinja/case.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/json_text.h"
#include "text/jinja/library.h"
#include "text/jinja/operations.h"
#include "text/jinja/text_tools.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

// soft_str: str(), but Markup stays Markup.
Text soft_str(Interpreter& in, const Value& value) {
    return value.text() ? *value.text() : str_of(in, value);
}

template <Text (*map)(const Text&)>
Value mapped(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("the filter", args, {});
    return in.text(map(soft_str(in, value)));
}

Value trim(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("trim", args, {"chars"});
    return in.text(
        strip(soft_str(in, value), bound.some(0) ? &bound.text(0) : nullptr, true, true));
}

Value string(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("string", args, {});
    return in.text(soft_str(in, value));
}

Value safe(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("safe", args, {});
    Text text = str_of(in, value);
    text.is_markup = true;
    return in.text(std::move(text));
}

Value escape(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("escape", args, {});
    if (value.text() && value.text()->is_markup) return value;
    return in.text(escaped(str_of(in, value)));
}

Value force_escape(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("forceescape", args, {});
    return in.text(escaped(str_of(in, value)));
}

Value replace(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("replace", args, {"old", "new", "count"}, 2);
    const int64_t count = bound.some(2) ? bound.integer(2, -1) : -1;
    return in.text(
        replaced(str_of(in, value), str_of(in, *bound[0]), str_of(in, *bound[1]), count));
}

Value format(Interpreter& in, const Value& value, Args& args) {
    require(args.positional.empty() || args.named.empty(),
            "format takes positional or keyword arguments, not both");
    if (args.named.empty())
        return in.text(printf_format(in, soft_str(in, value), in.tuple(args.positional)));
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [name, argument] : args.named) items.emplace_back(in.text(name), argument);
    return in.text(printf_format(in, soft_str(in, value), in.dict(std::move(items))));
}

Text indentation(const Bound& bound) {
    if (bound[0] && bound[0]->text()) return *bound[0]->text();
    const int64_t width = bound.integer(0, 4);
    require(width <= static_cast<int64_t>(kMaxTextBytes), "indent: ", width, " is too wide");
    return Text(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '));
}

Value indent(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("indent", args, {"width", "first", "blank"});
    require_defined(value);
    require(value.text(), "indent takes a str, not ", type_name(value));
    const Text margin = indentation(bound);
    Text text = *value.text();
    text.append("\n");
    Text result;
    if (bound.flag(1)) result.append(margin);
    bool is_first = true;
    for (const auto [begin, end] : line_ranges(text.bytes(), false)) {
        in.charge(1);
        if (!is_first) {
            result.append("\n");
            if (end > begin || bound.flag(2)) result.append(margin);
        }
        result.append(text, begin, end);
        is_first = false;
    }
    result.is_markup = value.text()->is_markup;
    return in.text(std::move(result));
}

Value truncate(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("truncate", args, {"length", "killwords", "end", "leeway"});
    const auto items = length_of(value);
    require(items.has_value(), "object of type '", type_name(value), "' has no len()");
    const auto size = static_cast<int64_t>(*items);
    const Text end = bound[2] && bound[2]->is_undefined() ? Text()
                     : bound[2]                           ? bound.text(2)
                                                          : Text("...");
    const auto end_size = static_cast<int64_t>(count_code_points(end.bytes()));
    const int64_t length = bound.integer(0, 255);
    const int64_t leeway = bound.some(3) ? bound.integer(3, 5) : 5;
    require(length >= end_size, "truncate: expected length >= ", end_size, ", got ", length);
    require(leeway >= 0, "truncate: expected leeway >= 0, got ", leeway);
    if (size - leeway <= length) return value;
    require(value.text(), "truncate takes a str, not ", type_name(value));
    const Text& text = *value.text();
    if (bound[2]) require_defined(*bound[2]);
    const size_t cut = byte_offset(text.bytes(), static_cast<size_t>(length - end_size));
    Text result = text.slice(0, cut);
    const size_t space = result.bytes().rfind(' ');
    if (!bound.flag(1) && space != std::string::npos) result = result.slice(0, space);
    result.append(end);
    return in.text(std::move(result));
}

Value center(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("center", args, {"width"});
    return in.text(justified(soft_str(in, value), bound.integer(0, 80), Text(" "), Side::center));
}

bool is_word(char32_t code_point) {
    const char kind = category_class(code_point);
    return code_point == '_' || kind == 'L' || kind == 'N';
}

Value word_count(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("wordcount", args, {});
    const Text text = soft_str(in, value);
    int64_t count = 0;
    bool inside = false;
    for (size_t at = 0; at < text.size();) {
        const bool was_inside = inside;
        inside = is_word(next_code_point(text.bytes(), at));
        count += inside && !was_inside;
    }
    return count;
}

Value url_encode(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("urlencode", args, {});
    require(value.text() || value.is_undefined() || !is_iterable(value),
            "urlencode takes a str, not ", type_name(value));
    const Text text = str_of(in, value);
    Text result;
    for (size_t at = 0; at < text.size(); ++at) {
        const char letter = text.bytes()[at];
        const bool is_plain = (letter >= '0' && letter <= '9') ||
                              ((letter | 32) >= 'a' && (letter | 32) <= 'z') ||
                              std::string_view("_.-~/").find(letter) != std::string_view::npos;
        char code[4];
        std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned char>(letter));
        result.append(is_plain ? std::string(1, letter) : std::string(code), text.is_input(at));
    }
    return in.text(std::move(result));
}

Value to_json(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
    JsonStyle style;
    style.ascii = bound.flag(0);
    style.sort_keys = bound.flag(3);
    if (const Value* indent = bound.some(1)) {
        style.item_separator = Text(",");
        style.indent = indent->text() ? *indent->text() : indentation_of(bound.integer(1, 0));
    }
    if (const Value* separators = bound.some(2)) {
        const Items items = collect(in, *separators);
        require(items.size() == 2 && items[0].text() && items[1].text(),
                "tojson: separators must be two strings");
        style.item_separator = *items[0].text();
        style.key_separator = *items[1].text();
    }
    return in.text(json_text(in, value, style));
}

}  // namespace

Filter find_text_filter(std::string_view name) {
    static constexpr Named<Filter> kFilters[] = {
        {"capitalize", mapped<capitalize>},
        {"center", center},
        {"e", escape},
        {"escape", escape},
        {"forceescape", force_escape},
        {"format", format},
        {"indent", indent},
        {"lower", mapped<lower>},
        {"replace", replace},
        {"safe", safe},
        {"string", string},
        {"title", mapped<title_filter>},
        {"tojson", to_json},
        {"trim", trim},
        {"truncate", truncate},
        {"upper", mapped<upper>},
        {"urlencode", url_encode},
        {"wordcount", word_count},
    };
    return find_named(kFilters, name);
}

}  // namespace hark::jinja
