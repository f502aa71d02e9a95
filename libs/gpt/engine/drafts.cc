#include "gpt/engine/drafts.h"

#include <algorithm>

namespace hark::gpt {

std::vector<int32_t> draft_tokens(std::span<const int32_t> tokens, int64_t most) {
    constexpr size_t kLongest = 3, kShortest = 2;
    for (size_t n = kLongest; n >= kShortest && most > 0; --n) {
        if (tokens.size() <= n) continue;
        const std::span<const int32_t> last = tokens.last(n),
                                       before = tokens.first(tokens.size() - 1);
        const auto found = std::find_end(before.begin(), before.end(), last.begin(), last.end());
        if (found == before.end()) continue;
        const auto next = tokens.begin() + (found - before.begin()) + static_cast<int64_t>(n);
        const int64_t count = std::min<int64_t>(most, tokens.end() - next);
        return {next, next + count};
    }
    return {};
}

}  // namespace hark::gpt
