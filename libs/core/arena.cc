#include "core/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace hark {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallestBlock = size_t{4} << 20;

size_t round_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Larger memory begins at a huge page, and the kernel is asked to back all whole huge pages of it by
// such. Weights are read once per token, and the processor's table of pages of 4 KB (TLB) has too
// few entries for them.
constexpr size_t kHugePage = size_t{2} << 20;

void* allocate(size_t bytes) {
    if (bytes <= kSmallestBlock) return std::aligned_alloc(kAlignment, round_up(bytes));
    void* memory = nullptr;
    if (::posix_memalign(&memory, kHugePage, bytes) != 0) return nullptr;
    ::madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // where it fails: small pages
    return memory;
}

}  // namespace

MemorySource cpu_memory() {
    return {Device::cpu,
            0,
            [](int, size_t bytes) {
                void* memory = allocate(bytes);
                if (!memory) throw OutOfMemory(concat("out of memory: needed ", bytes, " bytes"));
                return memory;
            },
            [](void* memory) { std::free(memory); },
            [](int, void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); },
            reserve_host_memory};
}

Arena::~Arena() {
    for (const Block& block : blocks_) source_.release(block.memory);
}

Tensor Arena::tensor(Dtype dtype, std::initializer_list<int64_t> shape) {
    Tensor view(nullptr, dtype, shape, source_.device);
    view.data = take(round_up(std::max<size_t>(view.bytes(), 1)));
    return view;
}

void* Arena::take(size_t bytes) {
    if (block_ == 0 && used_ == 0 && blocks_.size() > 1) join();
    while (block_ < blocks_.size() && blocks_[block_].bytes - used_ < bytes) {
        ++block_;
        used_ = 0;
    }
    if (block_ == blocks_.size()) {
        const size_t size = std::max(bytes, kSmallestBlock);
        blocks_.push_back({source_.allocate(size), size});
        used_ = 0;
    }
    void* memory = static_cast<std::byte*>(blocks_[block_].memory) + used_;
    used_ += bytes;
    size_t all = used_;
    for (size_t i = 0; i < block_; ++i) all += blocks_[i].bytes;
    peak_ = std::max(peak_, all);
    return memory;
}

void Arena::rewind(size_t block, size_t used) {
    block_ = block;
    used_ = used;
}

// Nothing is taken: several blocks become one of their total size, so that a loop ends up with one.
void Arena::join() {
    const size_t total = capacity();
    for (const Block& old : blocks_) source_.release(old.memory);
    blocks_.clear();
    blocks_.push_back({source_.allocate(total), total});
}

size_t Arena::capacity() const {
    size_t total = 0;
    for (const Block& block : blocks_) total += block.bytes;
    return total;
}

}  // namespace hark
