#include "text/jinja/json_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operations.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

std::string json_escape(char32_t code_point, bool ascii) {
    static constexpr std::string_view kLetters = "\"\\\n\r\t\f\b";
    static constexpr std::string_view kNames = "\"\\nrtfb";
    if (code_point < 0x80) {
        const size_t known = kLetters.find(static_cast<char>(code_point));
        if (known != kLetters.npos) return {'\\', kNames[known]};
        if (code_point >= 0x20 && (code_point < 0x7F || !ascii)) return {};
    } else if (!ascii) {
        return {};
    }
    char text[16];
    const auto code = static_cast<unsigned>(code_point);
    if (code < 0x10000)
        std::snprintf(text, sizeof text, "\\u%04x", code);
    else
        std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10),
                      0xDC00 + ((code - 0x10000) & 0x3FF));
    return text;
}

std::string json_number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return real_to_string(value);
}

class Writer {
  public:
    Writer(Interpreter& in, const JsonStyle& style) : in_(in), style_(style) {}

    void write(const Value& value) {
        in_.charge(1);
        if (const Text* text = value.text()) return write_text(*text);
        if (value.is_none()) return result_.append("null");
        if (const bool* flag = value.boolean()) return result_.append(*flag ? "true" : "false");
        if (const auto number = value.integer()) return result_.append(std::to_string(*number));
        if (const double* number = value.real()) return result_.append(json_number(*number));
        if (value.items()) return write_items(*value.items());
        if (value.dict()) return write_dict(*value.dict());
        fail("Object of type ", type_name(value), " is not JSON serializable");
    }

    Text take() { return std::move(result_); }

  private:
    void write_text(const Text& text) {
        const std::string& bytes = text.bytes();
        in_.charge_bytes(bytes.size());
        result_.append("\"");
        size_t plain = 0;
        for (size_t at = 0; at < bytes.size();) {
            const size_t begin = at;
            const std::string escape = json_escape(next_code_point(bytes, at), style_.ascii);
            if (escape.empty()) continue;
            result_.append(text, plain, begin);
            result_.append(escape, text.is_input(begin));
            plain = at;
        }
        result_.append(text, plain, bytes.size());
        result_.append("\"");
    }

    void new_line() {
        if (!style_.indent) return;
        result_.append("\n");
        for (int i = 0; i < level_; ++i) result_.append(*style_.indent);
    }

    // Before an item, or before the closing bracket.
    void separate(bool is_first) {
        if (!is_first) result_.append(style_.item_separator);
        new_line();
    }

    void write_items(const Items& items) {
        if (items.empty()) return result_.append("[]");
        result_.append("[");
        ++level_;
        for (size_t i = 0; i < items.size(); ++i) {
            separate(i == 0);
            write(items[i]);
        }
        --level_;
        new_line();
        result_.append("]");
    }

    void write_key(const Value& key) {
        if (key.text()) return write_text(*key.text());
        require(key.is_none() || key.number(), "keys must be str, int, float, bool or None, not ",
                type_name(key));
        result_.append("\"");
        write(key);
        result_.append("\"");
    }

    void write_dict(const Dict& dict) {
        if (dict.items.empty()) return result_.append("{}");
        std::vector<const std::pair<Value, Value>*> items;
        for (const auto& item : dict.items) items.push_back(&item);
        if (style_.sort_keys)
            std::stable_sort(items.begin(), items.end(), [&](const auto* a, const auto* b) {
                return order(in_, a->first, b->first, "<").value_or(0) < 0;
            });
        result_.append("{");
        ++level_;
        for (size_t i = 0; i < items.size(); ++i) {
            separate(i == 0);
            write_key(items[i]->first);
            result_.append(style_.key_separator);
            write(items[i]->second);
        }
        --level_;
        new_line();
        result_.append("}");
    }

    Interpreter& in_;
    const JsonStyle& style_;
    Text result_;
    int level_ = 0;
};

}  // namespace

Text indentation_of(int64_t width) {
    require(width <= 1000, "an indentation of ", width, " is too wide");
    return Text(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '));
}

Text json_text(Interpreter& in, const Value& value, const JsonStyle& style) {
    Writer writer(in, style);
    writer.write(value);
    return writer.take();
}

}  // namespace hark::jinja
