// "%s %d" % values, as Python's str does it.
#include <cmath>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/number_text.h"
#include "text/jinja/operations.h"
#include "text/jinja/text_tools.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

struct Directive {
    bool left = false, zero = false, plus = false, space = false, alternate = false;
    int64_t width = 0;
    int64_t precision = -1;
    char form = 's';
};

class Printf {
  public:
    Printf(Interpreter& in, const Text& format, const Value& values)
        : in_(in), format_(format), bytes_(format.bytes()), values_(values) {}

    Text run() {
        for (size_t at = 0; at < bytes_.size();) {
            const size_t percent = std::min(bytes_.find('%', at), bytes_.size());
            result_.append(format_, at, percent);
            at = percent < bytes_.size() ? directive(percent + 1) : percent;
        }
        const Tuple* tuple = values_.tuple();
        const size_t given = tuple ? tuple->items.size() : 1;
        // A mapping or a list may stay unused, as in Python.
        const bool may_stay = !tuple && (values_.dict() || values_.list());
        require(next_ >= given || may_stay, "not all arguments converted during string formatting");
        return std::move(result_);
    }

  private:
    const Value& next_value() {
        if (const Tuple* tuple = values_.tuple()) {
            require(next_ < tuple->items.size(), "not enough arguments for format string");
            return tuple->items[next_++];
        }
        require(next_++ == 0, "not enough arguments for format string");
        return values_;
    }

    int64_t number(size_t& at) {
        if (at < bytes_.size() && bytes_[at] == '*') {
            ++at;
            const auto found = next_value().integer();
            require(found.has_value(), "* wants int");
            return *found;
        }
        int64_t value = 0;
        for (; at < bytes_.size() && bytes_[at] >= '0' && bytes_[at] <= '9'; ++at)
            value = std::min<int64_t>(value * 10 + bytes_[at] - '0', INT32_MAX);
        return value;
    }

    // The value of %(name)s.
    const Value* named_value(size_t& at) {
        if (at >= bytes_.size() || bytes_[at] != '(') return nullptr;
        const size_t close = bytes_.find(')', at);
        require(close != bytes_.npos, "incomplete format key");
        require(values_.dict(), "format requires a mapping");
        const std::string name = bytes_.substr(at + 1, close - at - 1);
        const Value* found = values_.dict()->find(name);
        require(found, "the format's mapping has no key '", name, "'");
        at = close + 1;
        next_ = 1;
        return found;
    }

    size_t directive(size_t at) {
        Directive directive;
        const Value* value = named_value(at);
        for (; at < bytes_.size(); ++at) {
            const char flag = bytes_[at];
            bool* const set = flag == '-'   ? &directive.left
                              : flag == '0' ? &directive.zero
                              : flag == '+' ? &directive.plus
                              : flag == ' ' ? &directive.space
                              : flag == '#' ? &directive.alternate
                                            : nullptr;
            if (!set) break;
            *set = true;
        }
        directive.width = number(at);
        if (directive.width < 0) directive.left = true, directive.width = -directive.width;
        if (at < bytes_.size() && bytes_[at] == '.') directive.precision = number(++at);
        while (at < bytes_.size() && (bytes_[at] == 'l' || bytes_[at] == 'h' || bytes_[at] == 'L'))
            ++at;
        require(at < bytes_.size(), "incomplete format");
        directive.form = bytes_[at];
        if (directive.form == '%')
            result_.append("%");
        else
            convert(directive, value ? *value : next_value());
        return at + 1;
    }

    void convert(const Directive& directive, const Value& value) {
        switch (directive.form) {
            case 's':
            case 'r':
            case 'a':
                return text(directive,
                            directive.form == 's' ? str_of(in_, value) : repr_of(in_, value));
            case 'c':
                return character(directive, value);
            case 'd':
            case 'i':
            case 'u':
            case 'x':
            case 'X':
            case 'o':
                return integer(directive, value);
            case 'e':
            case 'E':
            case 'f':
            case 'F':
            case 'g':
            case 'G':
                return real(directive, value);
            default:
                fail("unsupported format character '", directive.form, "'");
        }
    }

    void character(const Directive& directive, const Value& value) {
        if (value.text()) {
            require(count_code_points(value.text()->bytes()) == 1, "%c requires int or char");
            return text(directive, *value.text());
        }
        const auto code = value.integer();
        require(code && *code >= 0 && *code <= 0x10FFFF && (*code < 0xD800 || *code > 0xDFFF),
                "%c requires int or char");
        std::string bytes;
        append_code_point(bytes, static_cast<char32_t>(*code));
        text(directive, Text(bytes));
    }

    void text(const Directive& directive, Text text) {
        if (directive.precision >= 0)
            text =
                text.slice(0, byte_offset(text.bytes(), static_cast<size_t>(directive.precision)));
        result_.append(
            justified(text, directive.width, Text(" "), directive.left ? Side::left : Side::right));
    }

    void integer(const Directive& directive, const Value& value) {
        require_defined(value);
        require(value.number().has_value(), "%", directive.form,
                " format: a real number is required, not ", type_name(value));
        int64_t whole = 0;
        if (const double* number = value.real()) {
            require(directive.form == 'd' || directive.form == 'i' || directive.form == 'u', "%",
                    directive.form, " format: an integer is required, not float");
            require(std::fabs(*number) < 9.2e18, "cannot convert ", *number, " to an integer");
            whole = static_cast<int64_t>(*number);
        } else {
            whole = *value.integer();
        }
        const char form = directive.form;
        const int base = form == 'x' || form == 'X' ? 16 : form == 'o' ? 8 : 10;
        const uint64_t magnitude =
            whole < 0 ? 0 - static_cast<uint64_t>(whole) : static_cast<uint64_t>(whole);
        std::string digits = digits_of(magnitude, base, form == 'X');
        require(directive.precision <= 1000, "a precision of ", directive.precision,
                " is too large");
        if (const auto wanted = static_cast<size_t>(std::max<int64_t>(directive.precision, 0));
            digits.size() < wanted)
            digits.insert(0, wanted - digits.size(), '0');
        const std::string prefix = directive.alternate && base != 10 ? std::string("0") + form : "";
        field(directive, whole < 0, prefix, digits, true);
    }

    void real(const Directive& directive, const Value& value) {
        require_defined(value);
        const auto number = value.number();
        require(number.has_value(), "must be real number, not ", type_name(value));
        const int precision = directive.precision < 0 ? 6 : static_cast<int>(directive.precision);
        field(directive, std::signbit(*number) && !std::isnan(*number), "",
              real_digits(*number, directive.form, precision, directive.alternate),
              std::isfinite(*number));
    }

    void field(const Directive& directive, bool is_negative, const std::string& prefix,
               std::string digits, bool may_zero) {
        std::string sign = is_negative ? "-" : directive.plus ? "+" : directive.space ? " " : "";
        sign += prefix;
        require(directive.width <= static_cast<int64_t>(kMaxTextBytes), "a width of ",
                directive.width, " is too large");
        const auto width = static_cast<size_t>(directive.width);
        if (directive.zero && !directive.left && may_zero && sign.size() + digits.size() < width)
            digits.insert(0, width - sign.size() - digits.size(), '0');
        result_.append(justified(Text(sign + digits), directive.width, Text(" "),
                                 directive.left ? Side::left : Side::right));
    }

    Interpreter& in_;
    const Text& format_;
    const std::string& bytes_;
    const Value& values_;
    size_t next_ = 0;
    Text result_;
};

}  // namespace

Text printf_format(Interpreter& in, const Text& format, const Value& values) {
    in.charge_bytes(format.size());
    Text result = Printf(in, format, values).run();
    result.is_markup = format.is_markup;
    return result;
}

}  // namespace hark::jinja
