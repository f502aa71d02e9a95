// linear of small batches on Hopper, weights of a byte each.
#include "kernels/linear/small_m_wgmma_kernel.cuh"

namespace hark::cuda {

using namespace small_m_wgmma;

bool small_m_wgmma_of_bytes(Context& ctx, const SmallMArgs& args, const Tensor& x,
                            const Tensor& w) {
    if (!has_batch_kernel<__half, fp8_t>()) return false;
    return with_small_m_types(x.dtype, w.dtype, [&](auto x_value, auto w_value) {
        using W = decltype(w_value);
        if constexpr (sizeof(W) == 1) choose<decltype(x_value), W>(ctx, args, x, w);
    });
}

}  // namespace hark::cuda
