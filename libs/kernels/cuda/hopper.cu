#include "kernels/cuda/hopper.cuh"

#include <algorithm>

#include "kernels/cuda/driver.cuh"

namespace hark::cuda {
namespace {

int attribute(cudaDeviceAttr which) {
    int device = 0, value = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

CUtensorMap tensor_map(CUtensorMapDataType type, CUtensorMapSwizzle swizzle, const void* data,
                       std::initializer_list<uint64_t> sizes,
                       std::initializer_list<uint64_t> strides,
                       std::initializer_list<uint32_t> box) {
    uint32_t steps[5];
    std::fill_n(steps, 5, 1);
    CUtensorMap map;
    const CUresult status = DRIVER_FUNCTION(cuTensorMapEncodeTiled)(
        &map, type, static_cast<uint32_t>(sizes.size()), const_cast<void*>(data), sizes.begin(),
        strides.begin(), box.begin(), steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    require(status == CUDA_SUCCESS, "cuTensorMapEncodeTiled: error ", static_cast<int>(status));
    return map;
}

}  // namespace

CUtensorMap tile_map(Dtype dtype, const void* data, std::initializer_list<uint64_t> sizes,
                     std::initializer_list<uint64_t> strides, std::initializer_list<uint32_t> box) {
    const CUtensorMapDataType type = dtype == Dtype::fp8   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                     : dtype == Dtype::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                           : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    return tensor_map(type, CU_TENSOR_MAP_SWIZZLE_128B, data, sizes, strides, box);
}

CUtensorMap plain_map(const void* data, std::initializer_list<uint64_t> sizes,
                      std::initializer_list<uint64_t> strides,
                      std::initializer_list<uint32_t> box) {
    return tensor_map(CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_SWIZZLE_NONE, data, sizes,
                      strides, box);
}

bool is_hopper() { return attribute(cudaDevAttrComputeCapabilityMajor) == 9; }

bool has_hopper_code(const void* kernel) {
    if (!is_hopper()) return false;
    cudaFuncAttributes found;
    CUDA_CHECK(cudaFuncGetAttributes(&found, kernel));
    return found.ptxVersion >= 90;
}

int shared_limit() { return attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin); }

int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }

}  // namespace hark::cuda
