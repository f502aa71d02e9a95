// The lexer's patterns. Positions are bytes of the whole template.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "text/jinja/lexer.h"

namespace hark::jinja {

// After the white space at `at`, any Unicode space as Python's \s.
size_t skip_spaces(std::string_view text, size_t at);
// Where the white space at the text's end begins.
size_t trimmed_end(std::string_view text);

// The end of a tag {% raw %} that begins at `at`; 0 if none does.
size_t raw_begin_end(std::string_view text, size_t at);
// Begin and end of the next tag {% endraw %}; npos if there is none. The end is after its brace.
std::pair<size_t, size_t> find_endraw(std::string_view text, size_t at);

// Reads one token of an expression at `at`, and returns its end, or `at` if there is none. Throws
// Error "line N: ..." for a token that is wrong.
size_t scan_token(std::string_view text, size_t at, Token& token);

}  // namespace hark::jinja
