// English number words, digit by digit, as figures: how people say telephone and card numbers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "operations/redact/finding.h"

namespace hark::redact {

// A text with figures in the place of number words, and the bytes that each of its bytes is of.
struct FiguresText {
    struct Source {
        size_t begin, end;  // bytes of the original
        bool spoken;
    };
    std::string text;
    std::vector<Source> sources;  // of each byte of `text`

    // The bytes of the original that a finding in `text` is of.
    Finding in_original(const Finding& finding) const;
};

// The dashes U+2010 to U+2015 and the minus U+2212 as "-", the spaces U+00A0 and U+202F as " ".
FiguresText with_plain_marks(std::string_view text);

// "four one five" -> "4 1 5", "forty two" -> "42", "double seven" -> "77", "eight hundred" ->
// "800", "nineteen" -> "19"; "oh" next to a number is 0; between numbers "dash" is "-", "uh" and
// the like are left out; "plus" before one is "+". All else stays as it is.
FiguresText join_spoken_digits(std::string_view text);

}  // namespace hark::redact
