// Source: CUDA Driver API, Virtual Memory Management.
#include "kernels/runtime/reserved_gpu_memory.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/driver.cuh"

namespace hark::cuda {
namespace {

// Slabs of a whole reservation, at most: each takes some calls of the driver.
constexpr size_t kMostSlabs = 64;

size_t whole(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

void check_driver(CUresult status, const char* call) {
    require(status == CUDA_SUCCESS, call, ": error ", static_cast<int>(status));
}

class ReservedGpuMemory : public ReservedMemory {
  public:
    explicit ReservedGpuMemory(size_t bytes) {
        CUDA_CHECK(cudaGetDevice(&device_));
        size_t unit = 0;
        const CUmemAllocationProp kind = properties();
        check_driver(DRIVER_FUNCTION(cuMemGetAllocationGranularity)(
                         &unit, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                     "cuMemGetAllocationGranularity");
        slab_ = whole(std::max(bytes / kMostSlabs, size_t{1}), unit);
        slabs_.resize(whole(bytes, slab_) / slab_);
        const CUresult status =
            DRIVER_FUNCTION(cuMemAddressReserve)(&address_, slabs_.size() * slab_, 0, 0, 0);
        if (status == CUDA_ERROR_OUT_OF_MEMORY) throw_no_gpu_memory(bytes);
        check_driver(status, "cuMemAddressReserve");
        data_ = reinterpret_cast<void*>(address_);
    }
    ~ReservedGpuMemory() override {
        cudaSetDevice(device_);
        for (size_t slab = 0; slab < slabs_.size(); ++slab) release(slab);
        free_address_(address_, slabs_.size() * slab_);
    }

    void commit(size_t begin, size_t end) override {
        CUDA_CHECK(cudaSetDevice(device_));
        const size_t first = begin / slab_, last = end / slab_;
        CUresult status = CUDA_SUCCESS;
        for (size_t slab = first; slab < last && status == CUDA_SUCCESS; ++slab) status = map(slab);
        if (status == CUDA_SUCCESS) {
            CUmemAccessDesc access{};
            access.location = properties().location;
            access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            status = DRIVER_FUNCTION(cuMemSetAccess)(address_ + begin, end - begin, &access, 1);
        }
        if (status == CUDA_SUCCESS) return;
        for (size_t slab = first; slab < last; ++slab) release(slab);
        if (status == CUDA_ERROR_OUT_OF_MEMORY) throw_no_gpu_memory(end - begin);
        check_driver(status, "cuMemMap");
    }

    void decommit(size_t begin, size_t end) override {
        CUDA_CHECK(cudaSetDevice(device_));
        for (size_t slab = begin / slab_; slab < end / slab_; ++slab) release(slab);
    }

  private:
    CUmemAllocationProp properties() const {
        CUmemAllocationProp kind{};
        kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
        return kind;
    }

    CUresult map(size_t slab) {
        const CUmemAllocationProp kind = properties();
        CUmemGenericAllocationHandle made = 0;
        CUresult status = DRIVER_FUNCTION(cuMemCreate)(&made, slab_, &kind, 0);
        if (status != CUDA_SUCCESS) return status;
        status = DRIVER_FUNCTION(cuMemMap)(address_ + slab * slab_, slab_, 0, made, 0);
        if (status == CUDA_SUCCESS)
            slabs_[slab] = made;
        else
            release_(made);
        return status;
    }

    void release(size_t slab) {
        if (slabs_[slab] == 0) return;
        unmap_(address_ + slab * slab_, slab_);
        release_(slabs_[slab]);
        slabs_[slab] = 0;
    }

    // Looked up at first: that may throw, and the destructor calls them.
    decltype(&cuMemUnmap) unmap_ = DRIVER_FUNCTION(cuMemUnmap);
    decltype(&cuMemRelease) release_ = DRIVER_FUNCTION(cuMemRelease);
    decltype(&cuMemAddressFree) free_address_ = DRIVER_FUNCTION(cuMemAddressFree);
    int device_ = 0;
    CUdeviceptr address_ = 0;
    std::vector<CUmemGenericAllocationHandle> slabs_;  // 0: no memory
};

}  // namespace

bool can_reserve_memory(int index) {
    CUdevice device = 0;
    int can = 0;
    check_driver(DRIVER_FUNCTION(cuDeviceGet)(&device, index), "cuDeviceGet");
    check_driver(DRIVER_FUNCTION(cuDeviceGetAttribute)(
                     &can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device),
                 "cuDeviceGetAttribute");
    return can != 0;
}

std::unique_ptr<ReservedMemory> reserve_gpu_memory(size_t bytes) {
    return std::make_unique<ReservedGpuMemory>(bytes);
}

void throw_no_gpu_memory(size_t bytes) {
    size_t free = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    throw OutOfMemory(concat("out of GPU memory: needed ", (bytes + (1 << 20) - 1) >> 20,
                             " MiB more, found ", free >> 20, " MiB free"));
}

}  // namespace hark::cuda
