// Dynamic time warping, and the median filter before it.
// Source: openai/whisper timing.py, dtw_cpu, backtrace and median_filter.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hark::whisper {

// The cheapest way from corner to corner of cost (rows, columns), row-major: pairs of a row and a
// column, in order. Costs are summed in float; a step is diagonal or downwards only where that is
// strictly cheaper than both others.
std::vector<std::pair<int32_t, int32_t>> dtw(std::span<const float> cost, int64_t rows,
                                             int64_t columns);

// The median of the `width` (odd) values around each value of the row, which goes on at its ends as
// in a mirror that stands on the last value. A row of width / 2 values or fewer stays as it is.
void median_filter(std::span<float> row, int64_t width);

}  // namespace hark::whisper
