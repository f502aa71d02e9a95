// How a prompt is cut into passes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/ops.h"

namespace hark::gpt {

// Rows of a pass, at most, if nobody asks for another number.
inline int64_t prompt_rows(const Context& ctx) {
    constexpr int64_t kOnCpu = 512, kOnGpu = 2048;
    // More rows than kManyRowsOnGpu would be summed in another order.
    constexpr int64_t kIndependent = 1024;
    if (!ctx.on_cuda()) return kOnCpu;
    return ctx.has_independent_rows() ? kIndependent : kOnGpu;
}

// Rows of a pass, at least, if the prompt is that long. Where rows are independent all rows of a
// prompt are computed by attention's kernels of many queries, wherever it is cut.
inline int64_t fewest_prompt_rows(const Context& ctx) {
    return ctx.has_independent_rows() ? kFewQueries + 1 : 1;
}

// Rows of the next pass of a prompt that has `left` rows: `most` at most, and as many that the last
// pass has `fewest`.
inline int64_t prompt_piece(int64_t left, int64_t most, int64_t fewest) {
    const int64_t n = std::min(left, most);
    return n < left && left - n < fewest ? std::max<int64_t>(left - fewest, 1) : n;
}

}  // namespace hark::gpt
