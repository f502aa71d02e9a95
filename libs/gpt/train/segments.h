// How the ranks that share the optimizer's work cut a layout's vector among themselves.
#pragma once

#include <vector>

#include "core/context.h"
#include "gpt/train/parameters.h"
#include "kernels/comm/communicator.h"

namespace hark::gpt {

// Elements whose gradients are complete once those of `block` are, or with kLast once all are; each
// rank has an equal part of them.
struct Segment {
    static constexpr int64_t kLast = -1;
    Range all, own;
    int64_t block = kLast;
};

// layout.size(), and zeros behind so that `ranks` can share it.
int64_t padded_size(const ParameterLayout& layout, const Communicator& ranks);

// Segments that are padded_size() together, as they are completed: each block's matrices, the
// vectors, the tables; or all in one where a GPU would gain nothing by that.
std::vector<Segment> segments_of(const Context& ctx, const ParameterLayout& layout,
                                 const Communicator& ranks);

}  // namespace hark::gpt
