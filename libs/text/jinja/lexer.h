// Cuts a template into tokens, with transformers' rules for white space: trim_blocks and
// lstrip_blocks are on, the last line's end is dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hark::jinja {

enum class TokenKind {
    data,
    output_begin,  // {{
    output_end,
    block_begin,  // {%
    block_end,
    name,
    string,
    integer,
    real,
    symbol,
    end,
};

struct Token {
    TokenKind kind = TokenKind::end;
    int line = 0;
    std::string text;  // of a string: unescaped
    int64_t integer = 0;
    double real = 0;
};

// Throws Error "line N: ..." if it is no template. `source` is valid UTF-8.
std::vector<Token> tokenize(std::string_view source);

// A string literal's text between its quotes, with Python's escapes decoded.
std::string unescape(std::string_view literal);

}  // namespace hark::jinja
