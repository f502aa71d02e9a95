// The tokens that a pass adds to its sequences, for loops of the CPU.
#pragma once

#include "core/context.h"
#include "core/error.h"
#include "kernels/ops.h"
#include "kernels/runtime/parallel.h"

namespace hark {

// body(t, b, p) for each packed row t: the token at position p of sequence b, whose newest tokens
// are the pass's. `work`: numbers that the body handles; few take one thread. The body must not
// throw. Throws Error where a sequence's length is less than its rows.
template <class Body>
void each_new_token(Context& ctx, const char* op, const BatchLayout& rows, int64_t work,
                    const Body& body) {
    const int32_t* start = rows.query_start.as<int32_t>();
    const int32_t* length = rows.length.as<int32_t>();
    for (int64_t b = 0; b < rows.sequences(); ++b) {
        const int64_t count = start[b + 1] - start[b], begin = length[b] - count;
        require(begin >= 0, op, ": sequence ", b, " has ", length[b], " keys after ", count,
                " were added");
        parallel_for(count * work < 16384 ? 1 : ctx.threads, count,
                     [&](int64_t j) { body(start[b] + j, b, begin + j); });
    }
}

}  // namespace hark
