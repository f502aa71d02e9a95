// Dynamic time warping, and the median filter before it.
// Source: openai/whisper timing.py, dtw_cpu, backtrace and median_filter.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hark::whisper {

// The cheapest path from corner to corner of cost (rows, columns), row-major: pairs of row and
// column, in order. Costs are summed in float. A step is diagonal or down only if that is strictly
// cheaper than both others.
std::vector<std::pair<int32_t, int32_t>> dtw(std::span<const float> cost, int64_t rows,
                                             int64_t columns);

// Replaces each value by the median of the `width` (odd) values around it; the row's ends are
// mirrored without repeating the end value. Rows of at most width / 2 values are unchanged.
void median_filter(std::span<float> row, int64_t width);

}  // namespace hark::whisper
