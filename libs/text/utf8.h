// UTF-8: text that is never cut inside a code point, and never invalid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hark {

// U+FFFD.
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Lets whole code points through and holds back the bytes of one that has not yet ended. Bytes that
// cannot be part of UTF-8 become U+FFFD, one for each maximal subpart, as Python's
// bytes.decode(errors="replace") does (The Unicode Standard, section 3.9, table 3-8).
class Utf8Stream {
  public:
    // The code points that are whole once `bytes` have come.
    std::string push(std::string_view bytes);
    // U+FFFD where the text ended inside a code point, else nothing. The stream is empty then.
    std::string finish();

  private:
    std::string held_;  // at most three bytes: the valid beginning of a code point
};

// The text with its invalid bytes replaced by U+FFFD, as Utf8Stream does.
std::string replace_invalid(std::string_view bytes);

bool is_valid_utf8(std::string_view bytes);
// The offset of the first byte that is no part of UTF-8; npos if there is none.
size_t first_invalid(std::string_view bytes);

// Code points in valid UTF-8.
size_t count_code_points(std::string_view text);

// Appends one code point's bytes.
void append_code_point(std::string& text, char32_t code_point);

// The code point that begins at `at`, in valid UTF-8; moves `at` past it.
char32_t next_code_point(std::string_view text, size_t& at);

}  // namespace hark
