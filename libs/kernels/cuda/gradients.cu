// The library's table of the device's side of gradients.h.
#include "kernels/gradients.cuh"

#include "kernels/cuda_gradients.h"

extern "C" __attribute__((visibility("default"))) const hark::CudaGradients* hark_cuda_gradients() {
    namespace cuda = hark::cuda;
    static const hark::CudaGradients gradients = {
        .linear_forward = cuda::linear_forward,
        .linear_activated = cuda::linear_activated,
        .linear_backward = cuda::linear_backward,
        .set_zero = cuda::set_zero,
        .round_randomly = cuda::round_randomly,
        .activate = cuda::activate,
        .activate_backward = cuda::activate_backward,
        .layer_norm_backward = cuda::layer_norm_backward,
        .embedding_backward = cuda::embedding_backward,
        .self_attention = cuda::self_attention,
        .self_attention_backward = cuda::self_attention_backward,
        .cross_entropy = cuda::cross_entropy,
        .clip_by_norm = cuda::clip_by_norm,
        .adamw = cuda::adamw,
        .orthogonalize = cuda::orthogonalize,
        .muon = cuda::muon,
    };
    return &gradients;
}
