// Parts of Python's str methods that filters share.
#pragma once

#include <cstdint>
#include <optional>

#include "text/jinja/text.h"

namespace hark::jinja {

// str.replace; every match if count is negative.
Text replaced(const Text& text, const Text& old, const Text& with, int64_t count);

enum class Side { left, center, right };  // where the text is in its field
Text justified(const Text& text, int64_t width, const Text& fill, Side side);

// int(text, base) and float(text); nullopt where Python raises ValueError. Throws Error beyond 64
// bits.
std::optional<int64_t> parse_integer(std::string_view text, int64_t base);
std::optional<double> parse_real(std::string_view text);

}  // namespace hark::jinja
