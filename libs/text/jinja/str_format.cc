#include "text/jinja/str_format.h"

#include <cmath>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/number_text.h"
#include "text/jinja/operations.h"
#include "text/jinja/text_tools.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

class Formatter {
  public:
    Formatter(Interpreter& in, const Args& args) : in_(in), args_(args) {}

    // A field's specification may have fields, whose own specifications may not.
    Text run(const Text& format, int depth) {
        const std::string& bytes = format.bytes();
        Text result;
        for (size_t at = 0; at < bytes.size();) {
            const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
            result.append(format, at, brace);
            if (brace == bytes.size()) break;
            const bool is_double = brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace];
            if (is_double) {
                result.append(format, brace, brace + 1);
                at = brace + 2;
                continue;
            }
            require(bytes[brace] == '{', "Single '}' encountered in format string");
            const size_t close = matching(bytes, brace);
            result.append(field(format.slice(brace + 1, close), depth));
            at = close + 1;
        }
        return result;
    }

  private:
    static size_t matching(const std::string& bytes, size_t open) {
        int level = 0;
        for (size_t at = open; at < bytes.size(); ++at) {
            level += bytes[at] == '{';
            level -= bytes[at] == '}';
            if (level == 0) return at;
        }
        fail("expected '}' before end of string");
    }

    Text field(const Text& content, int depth) {
        require(depth < 2, "Max string recursion exceeded");
        const std::string& bytes = content.bytes();
        size_t end = 0;
        for (bool in_brackets = false; end < bytes.size(); ++end) {
            if (bytes[end] == '[') in_brackets = true;
            if (bytes[end] == ']') in_brackets = false;
            if (!in_brackets && (bytes[end] == '!' || bytes[end] == ':')) break;
        }
        Value value = find(bytes.substr(0, end));
        if (end < bytes.size() && bytes[end] == '!') {
            require(end + 1 < bytes.size(), "end of string while looking for conversion specifier");
            const char conversion = bytes[end + 1];
            require(conversion == 's' || conversion == 'r', "Unknown conversion specifier '",
                    conversion, "'");
            value = in_.text(conversion == 's' ? str_of(in_, value) : repr_of(in_, value));
            end += 2;
            require(end == bytes.size() || bytes[end] == ':', "expected ':' after conversion");
        }
        const size_t spec = std::min(end + 1, bytes.size());
        return format_value(in_, value, run(content.slice(spec, bytes.size()), depth + 1));
    }

    Value first(const std::string& name) {
        const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
        if (!name.empty() && !is_number) {
            for (const auto& [known, value] : args_.named)
                if (known == name) return value;
            fail("format: no argument '", name, "'");
        }
        require(mode_ == 0 || (mode_ == 1) == name.empty(),
                "cannot switch between manual and automatic field numbering");
        mode_ = name.empty() ? 1 : 2;
        const auto index = name.empty() ? std::optional<int64_t>(next_++) : parse_integer(name, 10);
        require(*index < static_cast<int64_t>(args_.positional.size()), "Replacement index ",
                *index, " out of range for positional args tuple");
        return args_.positional[static_cast<size_t>(*index)];
    }

    // A name or a number, then .name and [key].
    Value find(const std::string& path) {
        size_t at = std::min(path.find_first_of(".["), path.size());
        Value value = first(path.substr(0, at));
        while (at < path.size()) {
            if (path[at] == '.') {
                const size_t end = std::min(path.find_first_of(".[", at + 1), path.size());
                value = attribute(in_, value, path.substr(at + 1, end - at - 1));
                at = end;
            } else {
                const size_t close = path.find(']', at);
                require(path[at] == '[' && close != path.npos, "Missing ']' in format string");
                const std::string key = path.substr(at + 1, close - at - 1);
                const bool is_number =
                    !key.empty() && key.find_first_not_of("0123456789") == key.npos;
                value =
                    item(in_, value, is_number ? Value(*parse_integer(key, 10)) : in_.text(key));
                at = close + 1;
            }
        }
        return value;
    }

    Interpreter& in_;
    const Args& args_;
    int mode_ = 0;  // 1: fields are numbered automatically, 2: by the format
    int64_t next_ = 0;
};

// [[fill]align][sign][#][0][width][,][.precision][type]
struct Specification {
    Text fill = Text(" ");
    char align = '\0';
    char sign = '-';
    bool alternate = false, zero = false;
    int64_t width = 0;
    char grouping = '\0';
    int64_t precision = -1;
    char form = '\0';
};

int64_t read_number(const std::string& bytes, size_t& at) {
    int64_t value = 0;
    for (; at < bytes.size() && is_digit(bytes[at]); ++at)
        value = std::min<int64_t>(value * 10 + bytes[at] - '0', INT32_MAX);
    return value;
}

bool is_align(const std::string& bytes, size_t at) {
    return at < bytes.size() && std::string_view("<>=^").find(bytes[at]) != std::string_view::npos;
}

Specification parse(const Text& text) {
    const std::string& bytes = text.bytes();
    Specification spec;
    size_t at = 0;
    size_t after = 0;
    if (!bytes.empty()) next_code_point(bytes, after);
    if (is_align(bytes, after) && after > 0) {
        spec.fill = text.slice(0, after);
        at = after;
    }
    const auto take = [&](std::string_view letters) {
        const bool has = at < bytes.size() && letters.find(bytes[at]) != letters.npos;
        return has ? bytes[at++] : '\0';
    };
    spec.align = is_align(bytes, at) ? bytes[at++] : '\0';
    if (const char sign = take("+- ")) spec.sign = sign;
    spec.alternate = take("#");
    spec.zero = take("0");
    if (spec.zero && !spec.align) spec.align = '=', spec.fill = Text("0");
    spec.width = read_number(bytes, at);
    spec.grouping = take(",_");
    if (take(".")) {
        require(at < bytes.size() && is_digit(bytes[at]), "Format specifier missing precision");
        spec.precision = read_number(bytes, at);
    }
    if (at < bytes.size()) spec.form = bytes[at++];
    require(at == bytes.size(), "Invalid format specifier '", bytes, "'");
    return spec;
}

std::string grouped(const std::string& digits, char separator) {
    const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    std::string text = digits;
    for (size_t at = whole; separator && at > 3; at -= 3) text.insert(at - 3, 1, separator);
    return text;
}

Text place(const Specification& spec, const Text& sign, const Text& body, char otherwise) {
    const char align = spec.align ? spec.align : otherwise;
    Text whole = sign;
    if (align == '=') {
        const auto sign_size = static_cast<int64_t>(count_code_points(sign.bytes()));
        whole.append(justified(body, spec.width - sign_size, spec.fill, Side::right));
        return whole;
    }
    whole.append(body);
    if (align != '^')
        return justified(whole, spec.width, spec.fill, align == '<' ? Side::left : Side::right);
    // Unlike str.center, an odd margin is wider on the right.
    const auto size = static_cast<int64_t>(count_code_points(whole.bytes()));
    const int64_t before = std::max<int64_t>(spec.width - size, 0) / 2;
    return justified(justified(whole, size + before, spec.fill, Side::right), spec.width, spec.fill,
                     Side::left);
}

Text sign_text(const Specification& spec, bool is_negative) {
    if (is_negative) return Text("-");
    return spec.sign == '-' ? Text() : Text(std::string(1, spec.sign));
}

Text format_integer(const Specification& spec, int64_t value) {
    const char form = spec.form ? spec.form : 'd';
    const int base = form == 'x' || form == 'X' ? 16 : form == 'o' ? 8 : form == 'b' ? 2 : 10;
    require(base != 10 || form == 'd' || form == 'n', "Unknown format code '", form,
            "' for object of type 'int'");
    require(spec.precision < 0, "Precision not allowed in integer format specifier");
    const uint64_t magnitude =
        value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    Text sign = sign_text(spec, value < 0);
    if (spec.alternate && base != 10) sign.append(std::string("0") + form);
    return place(spec, sign, Text(grouped(digits_of(magnitude, base, form == 'X'), spec.grouping)),
                 '>');
}

Text format_real(const Specification& spec, double value) {
    std::string digits;
    if (!spec.form && spec.precision < 0) {
        digits = real_to_string(std::fabs(value));
    } else if (spec.form == '%') {
        digits = real_digits(value * 100, 'f',
                             spec.precision < 0 ? 6 : static_cast<int>(spec.precision), false) +
                 "%";
    } else {
        const char form = spec.form ? spec.form : 'g';
        require(std::string_view("eEfFgGn").find(form) != std::string_view::npos,
                "Unknown format code '", form, "' for object of type 'float'");
        digits =
            real_digits(value, form == 'n' ? 'g' : form,
                        spec.precision < 0 ? 6 : static_cast<int>(spec.precision), spec.alternate);
    }
    const bool is_negative = std::signbit(value) && !std::isnan(value);
    return place(spec, sign_text(spec, is_negative), Text(grouped(digits, spec.grouping)), '>');
}

Text format_text(const Specification& spec, Text text) {
    require(!spec.form || spec.form == 's', "Unknown format code '", spec.form,
            "' for object of type 'str'");
    require(spec.align != '=', "'=' alignment not allowed in string format specifier");
    if (spec.precision >= 0)
        text = text.slice(0, byte_offset(text.bytes(), static_cast<size_t>(spec.precision)));
    return place(spec, Text(), text, '<');
}

}  // namespace

Text str_format(Interpreter& in, const Text& format, const Args& args) {
    in.charge_bytes(format.size());
    return Formatter(in, args).run(format, 0);
}

Text format_value(Interpreter& in, const Value& value, const Text& text) {
    if (text.empty()) return str_of(in, value);
    const Specification spec = parse(text);
    if (value.text()) return format_text(spec, str_of(in, value));
    const auto whole = value.integer();
    const bool as_integer = whole && (!spec.form || std::string_view("bcdoxXn").find(spec.form) !=
                                                        std::string_view::npos);
    if (as_integer) return format_integer(spec, *whole);
    if (value.number()) return format_real(spec, *value.number());
    fail("unsupported format string passed to ", type_name(value), ".__format__");
}

}  // namespace hark::jinja
