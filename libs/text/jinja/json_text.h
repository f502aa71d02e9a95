// JSON as Python's json.dumps writes it.
#pragma once

#include <optional>

#include "text/jinja/value.h"

namespace hark::jinja {

struct JsonStyle {
    bool ascii = false;
    bool sort_keys = false;
    std::optional<Text> indent;  // of a level; empty: one line
    Text item_separator = Text(", ");
    Text key_separator = Text(": ");
};

// `width` spaces.
Text indentation_of(int64_t width);

// Throws Error for what has no JSON.
Text json_text(Interpreter& in, const Value& value, const JsonStyle& style);

}  // namespace hark::jinja
