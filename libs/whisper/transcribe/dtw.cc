#include "whisper/transcribe/dtw.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace hark::whisper {
namespace {

enum Step : uint8_t { kDiagonal, kDown, kRight };

// The last step of the cheapest path to each place (rows + 1, columns + 1); row 0 and column 0 are
// before the cost's first.
std::vector<Step> cheapest_steps(std::span<const float> cost, int64_t rows, int64_t columns) {
    const size_t width = static_cast<size_t>(columns) + 1;
    std::vector<Step> steps((static_cast<size_t>(rows) + 1) * width);
    std::vector<float> above(width, std::numeric_limits<float>::infinity()), here(width);
    above[0] = 0;
    for (size_t i = 1; i <= static_cast<size_t>(rows); ++i) {
        here[0] = std::numeric_limits<float>::infinity();
        for (size_t j = 1; j < width; ++j) {
            const float diagonal = above[j - 1], down = above[j], right = here[j - 1];
            Step step = kRight;
            float before = right;
            if (diagonal < down && diagonal < right)
                step = kDiagonal, before = diagonal;
            else if (down < diagonal && down < right)
                step = kDown, before = down;
            here[j] = cost[(i - 1) * (width - 1) + j - 1] + before;
            steps[i * width + j] = step;
        }
        std::swap(above, here);
    }
    std::fill_n(steps.begin(), width, kRight);
    for (size_t i = 0; i <= static_cast<size_t>(rows); ++i) steps[i * width] = kDown;
    return steps;
}

}  // namespace

std::vector<std::pair<int32_t, int32_t>> dtw(std::span<const float> cost, int64_t rows,
                                             int64_t columns) {
    require(rows >= 0 && columns >= 0 && static_cast<int64_t>(cost.size()) == rows * columns,
            "dtw: expected ", rows, " rows of ", columns, " costs, found ", cost.size());
    const std::vector<Step> steps = cheapest_steps(cost, rows, columns);
    std::vector<std::pair<int32_t, int32_t>> path;
    for (int64_t i = rows, j = columns; i > 0 || j > 0;) {
        path.push_back({static_cast<int32_t>(i - 1), static_cast<int32_t>(j - 1)});
        const Step step = steps[static_cast<size_t>(i * (columns + 1) + j)];
        if (step != kRight) --i;
        if (step != kDown) --j;
    }
    std::reverse(path.begin(), path.end());
    return path;
}

void median_filter(std::span<float> row, int64_t width) {
    require(width > 0 && width % 2 == 1, "median_filter: expected an odd width, found ", width);
    const int64_t n = static_cast<int64_t>(row.size()), reach = width / 2;
    if (n <= reach) return;
    std::vector<float> padded(static_cast<size_t>(n + 2 * reach));
    for (int64_t i = -reach; i < n + reach; ++i) {
        const int64_t mirrored = i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
        padded[static_cast<size_t>(i + reach)] = row[static_cast<size_t>(mirrored)];
    }
    // The values around i, sorted: each step removes one and inserts one.
    std::vector<float> window(padded.begin(), padded.begin() + width);
    std::sort(window.begin(), window.end());
    for (int64_t i = 0; i < n; ++i) {
        row[static_cast<size_t>(i)] = window[static_cast<size_t>(reach)];
        if (i + 1 == n) break;
        const float fresh = padded[static_cast<size_t>(i + width)];
        const auto leaves =
            std::lower_bound(window.begin(), window.end() - 1, padded[static_cast<size_t>(i)]);
        size_t at = static_cast<size_t>(leaves - window.begin());
        for (; at + 1 < window.size() && window[at + 1] < fresh; ++at) window[at] = window[at + 1];
        for (; at > 0 && window[at - 1] > fresh; --at) window[at] = window[at - 1];
        window[at] = fresh;
    }
}

}  // namespace hark::whisper
