// Arena: memory for activations and scratch, handed out in order and taken back all at once.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <vector>

#include "core/reserved_memory.h"
#include "core/tensor.h"

namespace hark {

// How a device gives memory; the CPU's is the default. The functions are told which GPU it is: the
// current GPU of a thread that has done nothing on one is number 0.
struct MemorySource {
    Device device = Device::cpu;
    int index = 0;  // of the GPU
    void* (*allocate_on)(int index, size_t bytes) = nullptr;
    void (*release)(void* memory) = nullptr;
    void (*write_on)(int index, void* to, const void* from, size_t bytes) = nullptr;
    // Addresses for memory that comes by slabs; nullptr if the device has no such memory.
    std::unique_ptr<ReservedMemory> (*reserve)(size_t bytes) = nullptr;

    // Throws OutOfMemory.
    void* allocate(size_t bytes) const { return allocate_on(index, bytes); }
    // Copies from the host's memory; done when it returns or throws. Any threads may call it.
    void write(void* to, const void* from, size_t bytes) const { write_on(index, to, from, bytes); }
};

MemorySource cpu_memory();

class Arena {
  public:
    explicit Arena(MemorySource source = cpu_memory()) : source_(source) {}
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    // Uninitialised memory, aligned to 64 bytes, valid until its scope ends.
    Tensor tensor(Dtype dtype, std::initializer_list<int64_t> shape);

    // Everything taken from the arena while a Scope lives is given back when it dies.
    class Scope {
      public:
        explicit Scope(Arena& arena) : arena_(arena), block_(arena.block_), used_(arena.used_) {}
        ~Scope() { arena_.rewind(block_, used_); }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

      private:
        Arena& arena_;
        size_t block_, used_;
    };

    size_t capacity() const;
    size_t peak() const { return peak_; }  // the most bytes that were in use at a time
    const MemorySource& source() const { return source_; }

  private:
    struct Block {
        void* memory;
        size_t bytes;
    };
    void rewind(size_t block, size_t used);
    void join();
    void* take(size_t bytes);

    MemorySource source_;
    std::vector<Block> blocks_;
    size_t block_ = 0;  // the block in use
    size_t used_ = 0;   // bytes taken from it
    size_t peak_ = 0;
};

}  // namespace hark
