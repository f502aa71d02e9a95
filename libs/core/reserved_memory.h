// Memory that grows and shrinks in place: addresses are reserved at once, slabs of memory are
// mapped to them and unmapped.
#pragma once

#include <cstddef>
#include <memory>

namespace hark {

class ReservedMemory {
  public:
    virtual ~ReservedMemory() = default;  // gives back memory and addresses
    ReservedMemory(const ReservedMemory&) = delete;
    ReservedMemory& operator=(const ReservedMemory&) = delete;

    // The first address. It stays, so recorded graphs may have it.
    void* data() const { return data_; }
    // Bytes of a slab.
    size_t slab() const { return slab_; }
    // Gives memory, of undefined contents, to the bytes [begin, end), which have none. Both are
    // multiples of slab(). Throws OutOfMemory; then none of them has memory.
    virtual void commit(size_t begin, size_t end) = 0;
    // Takes the memory of the bytes [begin, end) back. Nothing may use it any more, no kernel that
    // has been launched either.
    virtual void decommit(size_t begin, size_t end) = 0;

  protected:
    ReservedMemory() = default;

    void* data_ = nullptr;
    size_t slab_ = 0;
};

// The host's. Throws OutOfMemory.
std::unique_ptr<ReservedMemory> reserve_host_memory(size_t bytes);

}  // namespace hark
