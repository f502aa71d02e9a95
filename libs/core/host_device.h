// What is compiled for the CPU and for a GPU from one source.
#pragma once

#ifdef __CUDACC__
#define HARK_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define HARK_HOST_DEVICE inline __attribute__((always_inline))
#endif
