// Markers in a text that arrives in pieces.
#pragma once

#include <algorithm>
#include <string_view>

namespace hark {

// Where the longest end of the text begins that may be the beginning of one of the markers (none is
// empty); the text's size if there is none.
template <class Markers>
size_t partial_marker(std::string_view text, const Markers& markers) {
    size_t begin = text.size();
    for (const std::string_view marker : markers)
        for (size_t at = text.size() - std::min(text.size(), marker.size() - 1); at < begin; ++at)
            if (marker.starts_with(text.substr(at))) begin = at;
    return begin;
}

}  // namespace hark
