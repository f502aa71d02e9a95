// Lines of text: those of a file in memory, and the longest that a stream may have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace hark {

// The longest line of JSON, and the longest prompt: input without a line end must not fill the
// memory.
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;

// Calls f(line, number) for every line, counted from 1, without its "\n" or "\r\n".
template <class F>
void for_each_line(std::string_view text, F&& f) {
    for (size_t number = 1; !text.empty(); ++number) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        f(line, number);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

}  // namespace hark
