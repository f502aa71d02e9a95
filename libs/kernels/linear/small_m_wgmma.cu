// linear of small batches on Hopper, weights in 16 bits.
#include "kernels/linear/small_m_boxes_product.cuh"
#include "kernels/linear/small_m_wgmma_kernel.cuh"

namespace hark::cuda {

using namespace small_m_wgmma;

bool small_m_wgmma_product(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    if (has_row_scales(w.dtype)) return small_m_wgmma_of_bytes(ctx, args, x, w);
    if (vocabulary_product(ctx, args, x, w)) return true;
    if (takes_boxes(args, x, w)) {
        box_product(ctx, args, x, w);
        return true;
    }
    if (w.dtype != x.dtype || !has_batch_kernel<__half, __half>()) return false;
    if (x.dtype == Dtype::f16) {
        choose<__half, __half>(ctx, args, x, w);
    } else {
        choose<__nv_bfloat16, __nv_bfloat16>(ctx, args, x, w);
    }
    return true;
}

}  // namespace hark::cuda
