// Unicode's properties and normal forms, as Python's str and unicodedata give them.
// All text is valid UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hark {

std::u32string to_code_points(std::string_view text);
std::string to_utf8(std::u32string_view code_points);

// str.lower(): one code point may become two, and a capital sigma at a word's end becomes the
// final one (The Unicode Standard, section 3.13, "Final_Sigma").
std::string lower_case(std::string_view text);

// unicodedata.normalize: compatibility decomposition, without and with recomposition.
std::string nfkd(std::string_view text);
std::string nfkc(std::string_view text);
// The same of canonical decomposition.
std::string nfd(std::string_view text);
std::string nfc(std::string_view text);

// The general category's first letter: L, M, N, P, S, Z or C (also if nothing is assigned).
char category_class(char32_t code_point);
bool is_nonspacing_mark(char32_t code_point);  // category Mn
bool is_space(char32_t code_point);            // str.isspace()
// The value of a decimal digit (category Nd) of any script, -1 for everything else.
int digit_value(char32_t code_point);

// str.split(): the text between runs of white space; views into the text.
std::vector<std::string_view> words_of(std::string_view text);
// Extended grapheme clusters (UAX #29), laid end to end they are the text; views into it.
std::vector<std::string_view> grapheme_clusters(std::string_view text);
// Columns on a terminal: two for wide characters, none for marks, two at most for a grapheme, such
// as an emoji of several code points.
int display_width(std::string_view text);

}  // namespace hark
