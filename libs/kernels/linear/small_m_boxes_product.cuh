// box_kernel (small_m_boxes.cuh), for small_m_wgmma_product.
#pragma once

#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {

// What both kernels need: 65 to 128 rows by weights of their 16-bit type, whole units of columns.
bool has_box_form(const SmallMArgs& args, const Tensor& x, const Tensor& w);

// Whether box_kernel computes the product: 65 to 128 rows by weights of their 16-bit type, whole
// units of columns, on Hopper.
bool takes_boxes(const SmallMArgs& args, const Tensor& x, const Tensor& w);

// Logits by vocabulary_kernel. Returns false, and does nothing, if the product is another one.
bool vocabulary_product(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w);

void box_product(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w);

}  // namespace hark::cuda
