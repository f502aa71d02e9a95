// linear of one row and weights of its 16-bit type (small_m_short_row.cu).
#pragma once

#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {

inline constexpr int64_t kMostShortColumns = 1536;  // of short slices

// small_m_product of one row whose slices are short, or long ones that are faster so, with the same
// bits. Returns false, and does nothing, if the kernels lack what the call needs.
bool short_row_product(Context& ctx, const SmallMArgs& args, const LinearFusion& with,
                       const Tensor& x, const Tensor& w);

}  // namespace hark::cuda
