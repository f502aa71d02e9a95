// Rows of e4m3 with one scale each: the values of Dtype::fp8's matrices.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace hark {

// to = from / scale, rounded to nearest even; returns scale = the largest magnitude / 448. A GPU
// rounds the rows of x so too.
float quantize_fp8(fp8_t* to, const float* from, int64_t n);

// to = from * scale
void widen_fp8(float* to, const fp8_t* from, float scale, int64_t n);

}  // namespace hark
