// Regular expressions as JSON schemas have them: ECMAScript's syntax, Unicode code points, without
// what no automaton can do.
#pragma once

#include <string_view>

#include "text/constrain/regular.h"

namespace hark {

// Alternatives, groups, classes, \d \w \s and their complements, \p{...} of general categories'
// first letters, \xHH \uHHHH \u{...}, ^, $, and * + ? {m,n}, lazy ones too. `.` is all but line
// ends. Throws Error that names the place and what is wrong or not supported: back references,
// lookahead and lookbehind, \b, flags, possessive quantifiers, counts above 10000, and
// more than 64 KiB.
Regular parse_regex(std::string_view pattern);

// The same of the whole text: ^ and $ are not needed.
CharAutomaton whole_match(std::string_view pattern);
// The texts that have a match anywhere, as a schema's `pattern`.
CharAutomaton any_match(std::string_view pattern);

}  // namespace hark
