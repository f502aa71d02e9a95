// The blocks of a memory: which are in use, by how many sequences, and which are free.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <vector>

namespace hark {

// The blocks 0, 1, ... of a memory. Several sequences may refer to one block: it is free when none
// does. A free block that was marked with keep() has contents that may be wanted again: it is taken
// last, in the order in which such blocks became free.
class BlockPool {
  public:
    explicit BlockPool(int64_t most) : most_(most) {}

    // Appends n free blocks to `table`, with one reference each: those that were in use before
    // first. Throws Error with both figures if fewer are free; then none is taken.
    void take(int64_t n, std::vector<int32_t>& table);
    // Adds a reference to a block that is in use or kept.
    void share(int32_t block);
    // Removes a reference.
    void give_back(int32_t block);
    // Marks the contents of a block in use; `on_loss` is told when it is taken for others.
    void keep(int32_t block) { blocks_[static_cast<size_t>(block)].is_kept = true; }
    void on_loss(std::function<void(int32_t block)> use) { on_loss_ = std::move(use); }

    int64_t most() const { return most_; }
    int64_t free() const { return most_ - touched() + std::ssize(free_) + std::ssize(kept_); }
    // How many have ever been taken: they are the blocks [0, touched()).
    int64_t touched() const { return std::ssize(blocks_); }

  private:
    struct Block {
        int32_t references = 0;
        bool is_kept = false;
        std::list<int32_t>::iterator place;  // in kept_, if it is kept and free
    };
    int32_t take_one();

    int64_t most_;
    std::vector<Block> blocks_;  // the touched ones
    std::vector<int32_t> free_;  // of them, without contents
    std::list<int32_t> kept_;    // free ones with contents, the oldest first
    std::function<void(int32_t)> on_loss_;
};

}  // namespace hark
