// WebAssembly gives memory back to nobody: all slabs have memory from the beginning.
#include "core/reserved_memory.h"

#include <algorithm>
#include <cstdlib>

#include "core/error.h"

namespace hark {
namespace {

class HostReservedMemory : public ReservedMemory {
  public:
    explicit HostReservedMemory(size_t bytes) {
        constexpr size_t kAlignment = 64;
        slab_ = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
        data_ = std::aligned_alloc(kAlignment, slab_);
        if (!data_) throw OutOfMemory(concat("out of memory: needed ", slab_, " bytes"));
    }
    ~HostReservedMemory() override { std::free(data_); }

    void commit(size_t, size_t) override {}
    void decommit(size_t, size_t) override {}
};

}  // namespace

std::unique_ptr<ReservedMemory> reserve_host_memory(size_t bytes) {
    return std::make_unique<HostReservedMemory>(bytes);
}

}  // namespace hark
