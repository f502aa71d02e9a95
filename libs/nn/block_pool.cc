#include "nn/block_pool.h"

#include "core/error.h"

namespace hark {

void BlockPool::take(int64_t n, std::vector<int32_t>& table) {
    require(n <= free(), "the key/value cache is full: ", n, " more blocks needed, ", free(),
            " of ", most_, " free");
    for (; n > 0; --n) table.push_back(take_one());
}

int32_t BlockPool::take_one() {
    int32_t block = static_cast<int32_t>(touched());
    if (!free_.empty()) {
        block = free_.back();
        free_.pop_back();
    } else if (touched() < most_) {
        blocks_.emplace_back();
    } else {
        block = kept_.front();
        kept_.pop_front();
        blocks_[static_cast<size_t>(block)].is_kept = false;
        if (on_loss_) on_loss_(block);
    }
    blocks_[static_cast<size_t>(block)].references = 1;
    return block;
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
