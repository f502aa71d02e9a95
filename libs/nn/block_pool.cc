#include "nn/block_pool.h"

#include "core/error.h"

namespace hark {

void BlockPool::take(int64_t n, std::vector<int32_t>& table) {
    require(n <= usable(), "the key/value cache is full: ", n, " more blocks needed, ", usable(),
            " of ", ready_, " free");
    for (; n > 0; --n) table.push_back(take_one());
}

int32_t BlockPool::take_one() {
    int32_t block = static_cast<int32_t>(touched());
    if (!free_.empty()) {
        block = free_.back();
        free_.pop_back();
    } else if (touched() < ready_) {
        blocks_.emplace_back();
    } else {
        block = lose_oldest();
    }
    blocks_[static_cast<size_t>(block)].references = 1;
    return block;
}

int32_t BlockPool::lose_oldest() {
    const int32_t block = kept_.front();
    kept_.pop_front();
    blocks_[static_cast<size_t>(block)].is_kept = false;
    if (on_loss_) on_loss_(block);
    return block;
}

void BlockPool::shrink() {
    while (!kept_.empty()) free_.push_back(lose_oldest());
    while (!blocks_.empty() && blocks_.back().references == 0) blocks_.pop_back();
    std::erase_if(free_, [this](int32_t block) { return block >= touched(); });
}

void BlockPool::share(int32_t block) {
    Block& shared = blocks_[static_cast<size_t>(block)];
    if (shared.references++ == 0) kept_.erase(shared.place);
}

void BlockPool::give_back(int32_t block) {
    Block& given = blocks_[static_cast<size_t>(block)];
    if (--given.references > 0) return;
    if (given.is_kept)
        given.place = kept_.insert(kept_.end(), block);
    else
        free_.push_back(block);
}

}  // namespace hark
