// What rope_append and rope_attention share.
#pragma once

#include "kernels/ops.h"

namespace hark {

// Throws Error unless rope_append can take these.
void check_rope_append(const Tensor& keys, const Tensor& values, const Columns& q, const Columns& k,
                       const Columns& v, int64_t heads, const Tensor& position, const Rope& rope,
                       const Norm& q_norm, const Norm& k_norm, const BatchLayout& rows);

}  // namespace hark
