// What the ggml and GGUF formats share: the numbers that stand for types of tensors.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace hark {

// The Dtype of a ggml_type (ggml.h): 0 f32, 1 f16, 2 q4_0, ... 14 q6_k, 30 bf16. Throws Error that
// begins with `where` for one that hark does not compute with.
Dtype ggml_dtype(uint32_t type, const std::string& where);
// The ggml_type of a Dtype. Throws Error where ggml has none.
uint32_t ggml_type(Dtype dtype);

}  // namespace hark
