#include "gpt/eval/windows.h"

#include <algorithm>

#include "text/unicode.h"
#include "text/utf8.h"

namespace hark::gpt {

void add_windows(PackedRows& rows, std::span<const int32_t> ids, int32_t prefix,
                 int64_t positions) {
    const int64_t n = std::ssize(ids);
    const auto id = [&](int64_t at) { return at < 0 ? prefix : ids[static_cast<size_t>(at)]; };
    for (int64_t scored = 0; scored < n;) {
        const int64_t end = std::min(n, scored + positions);
        // Row i holds token i - 1 and predicts token i.
        for (int64_t i = std::max<int64_t>(0, end - positions); i < end; ++i)
            rows.push(id(i - 1), i < scored ? -1 : id(i));
        rows.end_sequence();
        scored = end;
    }
}

int64_t count_words(std::string_view text) {
    int64_t words = 1;
    bool in_space = false;
    for (size_t at = 0; at < text.size();) {
        const bool space = is_space(next_code_point(text, at));
        words += space && !in_space;
        in_space = space;
    }
    return words;
}

}  // namespace hark::gpt
