// Checks that stored weights are finite numbers, before they are computed with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace hark {

// Throw Error if a value is not finite: of f32, or of n stored values of f32, f16, bf16 or whole
// quantised blocks, which need not be aligned.
void check_finite(std::span<const float> row);
void check_finite(const std::byte* from, Dtype dtype, int64_t n);

}  // namespace hark
