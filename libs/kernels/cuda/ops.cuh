// The GPU's side of ops.h and gradients.h; the public functions have checked the arguments.
#pragma once

#include "kernels/gradients.h"
#include "kernels/ops.h"

namespace hark::cuda {

#define HARK_OP(name) decltype(hark::name) name;
#include "kernels/ops.def"
#undef HARK_OP

}  // namespace hark::cuda
