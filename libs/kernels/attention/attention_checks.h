// What attention and rope_attention share.
#pragma once

#include "kernels/ops.h"

namespace hark {

// Throws Error unless attention can take these.
void check_attention(const Tensor& out, const Tensor& q, const Tensor& keys, const Tensor& values,
                     const BatchLayout& rows, const AttentionOptions& options);

}  // namespace hark
