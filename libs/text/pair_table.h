// Pairs of tokens that merge, to be looked up millions of times per second.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace hark {

// A pair of ids as one number.
inline uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// A hash table with its entries side by side: what is not there is seen in one line of cache, where
// std::unordered_map follows two pointers.
class PairTable {
  public:
    struct Merge {
        int32_t rank;
        int32_t id;  // of the pair joined
    };

    PairTable() : slots_(1) {}
    explicit PairTable(const std::unordered_map<uint64_t, Merge>& merges)
        : slots_(std::bit_ceil(2 * merges.size() + 1)),
          shift_(64 - std::bit_width(slots_.size() - 1)) {
        for (const auto& [key, merge] : merges) {
            size_t at = first_slot(key);
            while (slots_[at].merge.id >= 0) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = {key, merge};
        }
    }

    // nullptr where the pair does not merge.
    const Merge* find(uint64_t key) const {
        for (size_t at = first_slot(key);; at = (at + 1) & (slots_.size() - 1)) {
            const Slot& slot = slots_[at];
            if (slot.merge.id < 0) return nullptr;
            if (slot.key == key) return &slot.merge;
        }
    }

    // Calls use(key, merge) for each pair, in no order.
    template <class Use>
    void for_each(const Use& use) const {
        for (const Slot& slot : slots_)
            if (slot.merge.id >= 0) use(slot.key, slot.merge);
    }

  private:
    struct Slot {
        uint64_t key = 0;
        Merge merge{0, -1};  // id -1: the slot is free
    };

    // The upper bits of a product (Knuth 1973, 6.4): those depend on all of the key.
    size_t first_slot(uint64_t key) const {
        return shift_ < 64 ? (key * 0x9E3779B97F4A7C15u) >> shift_ : 0;
    }

    std::vector<Slot> slots_;  // a power of two of them, at most half in use
    int shift_ = 64;
};

}  // namespace hark
