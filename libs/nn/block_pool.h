// The blocks of a memory: which are in use, by how many sequences, and which are free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <vector>

namespace hark {

// The blocks 0, 1, ... of a memory. Several sequences may refer to one block: it is free when none
// does. A free block that was marked with keep() has contents that may be wanted again: it is taken
// last, in the order in which such blocks became free. Only the first ready() blocks have memory:
// their owner gives it with set_ready().
class BlockPool {
  public:
    // With memory for all blocks, or for none.
    explicit BlockPool(int64_t most, bool has_memory = true)
        : most_(most), ready_(has_memory ? most : 0) {}

    // Appends n free blocks to `table`, with one reference each: those that were in use before
    // first. Throws Error with both figures if fewer are free, or if fewer of them have memory;
    // then none is taken.
    void take(int64_t n, std::vector<int32_t>& table);
    // Adds a reference to a block that is in use or kept.
    void share(int32_t block);
    // Removes a reference.
    void give_back(int32_t block);
    // Marks the contents of a block in use; `on_loss` is told when it is taken for others.
    void keep(int32_t block) { blocks_[static_cast<size_t>(block)].is_kept = true; }
    void on_loss(std::function<void(int32_t block)> use) { on_loss_ = std::move(use); }
    // Tells that the blocks [0, n) have memory; touched() is the least.
    void set_ready(int64_t n) { ready_ = n; }
    // Drops what is marked with keep() and not in use. Then the last touched block is in use.
    void shrink();

    int64_t most() const { return most_; }
    int64_t free() const { return most_ - touched() + std::ssize(free_) + std::ssize(kept_); }
    // The blocks [0, touched()) have been taken, since shrink() at least.
    int64_t touched() const { return std::ssize(blocks_); }
    int64_t ready() const { return ready_; }
    // Free blocks that have memory.
    int64_t usable() const { return free() - (most_ - ready_); }
    // How many more blocks must be ready so that n can be taken without those that are kept.
    int64_t missing(int64_t n) const {
        return std::max<int64_t>(0, n - std::ssize(free_) - (ready_ - touched()));
    }

  private:
    struct Block {
        int32_t references = 0;
        bool is_kept = false;
        std::list<int32_t>::iterator place;  // in kept_, if it is kept and free
    };
    int32_t take_one();
    int32_t lose_oldest();

    int64_t most_, ready_;
    std::vector<Block> blocks_;  // the touched ones
    std::vector<int32_t> free_;  // of them, without contents
    std::list<int32_t> kept_;    // free ones with contents, the oldest first
    std::function<void(int32_t)> on_loss_;
};

}  // namespace hark
