// The nearest of some known names, for "did you mean".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hark {

// Returns the number of characters to insert, delete, replace or swap with a neighbour to turn `a`
// into `b` (Damerau-Levenshtein distance, restricted to adjacent swaps). Letters of either case
// are equal, and so are `_` and `-`.
size_t edit_distance(std::string_view a, std::string_view b);

// Returns the known name that `given` most likely stands for: the shortest of those that begin with
// it if the others begin with that too, or the nearest by edit_distance() within a third of its
// length. Returns "" if none is near.
std::string nearest(const std::string& given, const std::vector<std::string>& known);

// "; did you mean 'NAME'?", or "" if no known name is near.
std::string did_you_mean(const std::string& given, const std::vector<std::string>& known);

}  // namespace hark
