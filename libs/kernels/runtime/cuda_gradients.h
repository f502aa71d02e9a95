// The GPU's side of gradients.h, in libhark-cuda.so.
#pragma once

#include "kernels/gradients.h"

namespace hark {

struct CudaGradients {
    decltype(&hark::linear_forward) linear_forward;
    decltype(&hark::linear_activated) linear_activated;
    decltype(&hark::linear_backward) linear_backward;
    decltype(&hark::set_zero) set_zero;
    decltype(&hark::round_randomly) round_randomly;
    decltype(&hark::activate) activate;
    decltype(&hark::activate_backward) activate_backward;
    decltype(&hark::layer_norm_backward) layer_norm_backward;
    decltype(&hark::embedding_backward) embedding_backward;
    decltype(&hark::self_attention) self_attention;
    decltype(&hark::self_attention_backward) self_attention_backward;
    decltype(&hark::cross_entropy) cross_entropy;
    decltype(&hark::clip_by_norm) clip_by_norm;
    decltype(&hark::adamw) adamw;
    decltype(&hark::orthogonalize) orthogonalize;
    decltype(&hark::muon) muon;
};

// The library's functions, as cuda_ops(); kCudaAbi goes up with them too.
const CudaGradients& cuda_gradients();

}  // namespace hark
