// The lines of a text file that is in memory.
#pragma once

#include <algorithm>
#include <string_view>

namespace hark {

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
