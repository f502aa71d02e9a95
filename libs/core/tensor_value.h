// A number of a tensor in the host's memory.
#pragma once

#include "core/half.h"
#include "core/tensor.h"

namespace hark {

// Value i, from 0 in the order of memory, of a tensor of f32, f16 or bf16.
inline float value_at(const Tensor& tensor, int64_t i) {
    if (tensor.dtype == Dtype::f16) return to_float(tensor.as<f16_t>()[i]);
    if (tensor.dtype == Dtype::bf16) return to_float(tensor.as<bf16_t>()[i]);
    return tensor.as<float>()[i];
}

}  // namespace hark
