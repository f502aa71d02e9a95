// linear of one short row and weights of its 16-bit type (small_m_short_row.cu).
#pragma once

#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {

// small_m_product of one row of up to kMostShortColumns columns, with the same bits. Returns false,
// and does nothing, if the kernels lack what the call needs.
bool short_row_product(Context& ctx, const SmallMArgs& args, const LinearFusion& with,
                       const Tensor& x, const Tensor& w);

}  // namespace hark::cuda
