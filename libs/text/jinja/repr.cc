// str() and repr() of values.
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operations.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

// Whether repr() shows the code point itself.
bool is_printable(char32_t code_point) {
    if (code_point < 0x7F) return code_point >= 0x20;
    const char kind = category_class(code_point);
    return kind != 'C' && kind != 'Z';
}

std::string escape_of(char32_t code_point, char quote) {
    switch (code_point) {
        case '\\':
            return "\\\\";
        case '\n':
            return "\\n";
        case '\r':
            return "\\r";
        case '\t':
            return "\\t";
        default:
            break;
    }
    if (code_point == static_cast<char32_t>(quote)) return {'\\', quote};
    if (is_printable(code_point)) return {};
    char text[16];
    const char* format = code_point < 0x100     ? "\\x%02x"
                         : code_point < 0x10000 ? "\\u%04x"
                                                : "\\U%08x";
    std::snprintf(text, sizeof text, format, static_cast<unsigned>(code_point));
    return text;
}

Text repr_of_items(Interpreter& in, const Items& items, const char* open, const char* close) {
    Text text(open);
    for (size_t i = 0; i < items.size(); ++i) {
        if (i > 0) text.append(", ");
        text.append(repr_of(in, items[i]));
    }
    text.append(close);
    return text;
}

Text repr_of_dict(Interpreter& in, const Dict& dict) {
    Text text("{");
    for (size_t i = 0; i < dict.items.size(); ++i) {
        if (i > 0) text.append(", ");
        text.append(repr_of(in, dict.items[i].first));
        text.append(": ");
        text.append(repr_of(in, dict.items[i].second));
    }
    text.append("}");
    return text;
}

}  // namespace

// Python's float.__repr__: the shortest digits that read back, with an exponent below 1e-4 and
// from 1e16 on.
std::string real_to_string(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    char buffer[32];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
    const std::string text(buffer, end.ptr);
    const size_t e = text.find('e');
    const int exponent = std::stoi(text.substr(e + 1));
    const std::string sign = text[0] == '-' ? "-" : "";
    std::string digits;
    for (const char letter : text.substr(0, e))
        if (letter >= '0' && letter <= '9') digits += letter;
    if (exponent < -4 || exponent >= 16) {
        const std::string mantissa =
            digits.size() > 1 ? digits.substr(0, 1) + "." + digits.substr(1) : digits;
        char tail[16];
        std::snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
        return sign + mantissa + tail;
    }
    if (exponent < 0)
        return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
    const auto whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() <= whole)
        return sign + digits + std::string(whole - digits.size(), '0') + ".0";
    return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

Text quoted(const Text& text) {
    const std::string& bytes = text.bytes();
    const bool has_single = bytes.find('\'') != bytes.npos;
    const char quote = has_single && bytes.find('"') == bytes.npos ? '"' : '\'';
    Text result(std::string_view(&quote, 1));
    size_t plain = 0;
    for (size_t at = 0; at < bytes.size();) {
        const size_t begin = at;
        const std::string escape = escape_of(next_code_point(bytes, at), quote);
        if (escape.empty()) continue;
        result.append(text, plain, begin);
        result.append(escape, text.is_input(begin));
        plain = at;
    }
    result.append(text, plain, bytes.size());
    result.append(std::string_view(&quote, 1));
    return result;
}

Text repr_of(Interpreter& in, const Value& value) {
    in.charge(1);
    if (const Text* text = value.text()) {
        in.charge_bytes(text->size());
        if (!text->is_markup) return quoted(*text);
        Text result("Markup(");
        result.append(quoted(*text));
        result.append(")");
        return result;
    }
    if (value.is_undefined()) return Text("Undefined");
    if (const List* list = value.list()) return repr_of_items(in, list->items, "[", "]");
    if (const Tuple* tuple = value.tuple())
        return repr_of_items(in, tuple->items, "(", tuple->items.size() == 1 ? ",)" : ")");
    if (const Dict* dict = value.dict()) return repr_of_dict(in, *dict);
    return str_of(in, value);
}

Text str_of(Interpreter& in, const Value& value) {
    if (const Text* text = value.text()) {
        in.charge_bytes(text->size());
        Text plain = *text;
        plain.is_markup = false;
        return plain;
    }
    if (value.is_undefined()) return Text();
    if (value.is_none()) return Text("None");
    if (const bool* flag = value.boolean()) return Text(*flag ? "True" : "False");
    if (const auto number = value.integer()) return Text(std::to_string(*number));
    if (const double* number = value.real()) return Text(real_to_string(*number));
    if (Object* object = value.object()) return object->repr(in);
    return repr_of(in, value);
}

}  // namespace hark::jinja
