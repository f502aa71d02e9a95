// The GPU's side of ops.h and gradients.h; the public functions have checked the arguments.
#pragma once

#include "kernels/gradients.h"
#include "kernels/ops.h"

namespace hark {

struct CudaOps {
#define HARK_OP(name) decltype(&hark::name) name;
#include "kernels/ops.def"
#undef HARK_OP
};

// The functions of libhark-cuda.so; the first call opens it. Throws Error as cuda_runtime() does.
const CudaOps& cuda_ops();

}  // namespace hark
