// Products of a warpgroup (hopper.cuh) of further widths, both operands in shared memory.
#pragma once

#include "kernels/cuda/hopper.cuh"

namespace hark::cuda::hopper {

#define HARK_FLOATS_56(c) \
    HARK_FLOATS_32(c), HARK_16_FLOATS(c, 32), HARK_4_FLOATS(c, 48), HARK_4_FLOATS(c, 52)
#define HARK_FLOATS_96(c) HARK_FLOATS_64(c), HARK_16_FLOATS(c, 64), HARK_16_FLOATS(c, 80)
#define HARK_FLOATS_112(c) HARK_FLOATS_96(c), HARK_16_FLOATS(c, 96)
#define HARK_NAMES_56                                                                        \
    HARK_NAMES_32                                                                            \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48," \
    "%49, %50, %51, %52, %53, %54, %55"
#define HARK_NAMES_96                                                                        \
    HARK_NAMES_64                                                                            \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80," \
    "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define HARK_NAMES_112                                                                   \
    HARK_NAMES_96                                                                        \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, " \
    "%110, %111"
HARK_PRODUCT_FROM_SHARED(__half, f16, 112, 56, 56, 57, 58)
HARK_PRODUCT_FROM_SHARED(__half, f16, 224, 112, 112, 113, 114)
HARK_PRODUCT_FROM_SHARED(__nv_bfloat16, bf16, 112, 56, 56, 57, 58)
HARK_PRODUCT_FROM_SHARED(__nv_bfloat16, bf16, 224, 112, 112, 113, 114)

// As those of e4m3 in hopper.cuh.
#define HARK_E4M3_PRODUCT(N, COUNT, A, B, ADD)                                                   \
    __device__ inline void multiply(fp8_t, float(&c)[COUNT], uint64_t a, uint64_t b, bool add) { \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #ADD                                   \
                     ", 0;\n"                                                                    \
                     "wgmma.mma_async.sync.aligned.m64n" #N                                      \
                     "k32.f32.e4m3.e4m3 "                                                        \
                     "{" HARK_NAMES_##COUNT "}, %" #A ", %" #B ", p, 1, 1;\n}"                   \
                     : HARK_FLOATS_##COUNT(c)                                                    \
                     : "l"(a), "l"(b), "r"(static_cast<int>(add)));                              \
    }
HARK_E4M3_PRODUCT(64, 32, 32, 33, 34)

}  // namespace hark::cuda::hopper
