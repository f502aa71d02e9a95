#include "core/reserved_memory.h"

#include <sys/mman.h>

#include <cstdint>

#include "core/error.h"

namespace hark {
namespace {

// A huge page: the kernel is asked to back a slab by one.
constexpr size_t kHostSlab = size_t{2} << 20;

// Pages that nobody can access; they count for no limit of committed memory.
void* map_nothing(void* at, size_t bytes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0);
    return ::mmap(at, bytes, PROT_NONE, flags, -1, 0);
}

class HostReservedMemory : public ReservedMemory {
  public:
    explicit HostReservedMemory(size_t bytes) : mapped_bytes_(bytes + kHostSlab) {
        mapped_ = map_nothing(nullptr, mapped_bytes_);
        if (mapped_ == MAP_FAILED)
            throw OutOfMemory(concat("out of memory: no addresses for ", bytes, " bytes"));
        const auto address = reinterpret_cast<uintptr_t>(mapped_);
        data_ = reinterpret_cast<void*>((address + kHostSlab - 1) / kHostSlab * kHostSlab);
        slab_ = kHostSlab;
    }
    ~HostReservedMemory() override { ::munmap(mapped_, mapped_bytes_); }

    void commit(size_t begin, size_t end) override {
        if (::mprotect(at(begin), end - begin, PROT_READ | PROT_WRITE) != 0)
            throw OutOfMemory(concat("out of memory: needed ", end - begin, " bytes"));
        ::madvise(at(begin), end - begin, MADV_HUGEPAGE);  // where it fails: small pages
    }

    void decommit(size_t begin, size_t end) override {
        require(map_nothing(at(begin), end - begin) != MAP_FAILED,
                "internal error: the kernel takes no memory back");
    }

  private:
    void* at(size_t byte) const { return static_cast<std::byte*>(data_) + byte; }

    void* mapped_;
    size_t mapped_bytes_;
};

}  // namespace

std::unique_ptr<ReservedMemory> reserve_host_memory(size_t bytes) {
    const size_t whole = (bytes + kHostSlab - 1) / kHostSlab * kHostSlab;
    return std::make_unique<HostReservedMemory>(whole);
}

}  // namespace hark
