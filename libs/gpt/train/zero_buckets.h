// The buckets in which data-parallel ranks share a layout's vector and the optimizer's work.
// Source: Rajbhandari et al. 2020 (ZeRO, stage 1).
#pragma once

#include <vector>

#include "core/context.h"
#include "gpt/train/parameters.h"
#include "kernels/comm/communicator.h"

namespace hark::gpt {

// Elements whose gradients are complete after the backward pass of `block`, or, with kLast, after
// all of it. Each rank updates an equal part, `local`.
struct ZeroBucket {
    static constexpr int64_t kLast = -1;
    Range full, local;
    int64_t block = kLast;
};

// layout.size(), rounded up so that `ranks` can share it.
int64_t padded_size(const ParameterLayout& layout, const Communicator& ranks);

// The buckets of padded_size() elements in the order of completion: each block's matrices, the
// vectors, the tables. One bucket if a GPU would gain nothing from several.
std::vector<ZeroBucket> zero_buckets(const Context& ctx, const ParameterLayout& layout,
                                     const Communicator& ranks);

}  // namespace hark::gpt
