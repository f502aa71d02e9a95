// Letter case, white space and lines of texts, as Python's str methods see them. Origins are kept.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/jinja/text.h"

namespace hark::jinja {

Text lower(const Text& text);
Text upper(const Text& text);
Text capitalize(const Text& text);  // the first letter in title case, the others in lower case
Text title(const Text& text);       // each word so; a word is a run of letters with case
Text swap_case(const Text& text);
// Jinja's filter title: words end at white space and - ( { [ <.
Text title_filter(const Text& text);

bool is_lower(std::string_view text);
bool is_upper(std::string_view text);
bool is_title(std::string_view text);

// str.strip(chars): `characters` is null for white space.
Text strip(const Text& text, const Text* characters, bool left, bool right);

// str.splitlines(keepends): byte ranges.
struct ByteRange {
    size_t begin, end;
};
std::vector<ByteRange> line_ranges(std::string_view text, bool keep_ends);
// str.split() without a separator, at most `most` cuts from the left or the right; -1 for all.
std::vector<ByteRange> word_ranges(std::string_view text, int64_t most, bool from_right);

}  // namespace hark::jinja
