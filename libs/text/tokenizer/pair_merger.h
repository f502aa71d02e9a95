// The merging step of byte-pair encoding, for every vocabulary whose pairs have ranks.
// Source: Sennrich et al. 2016, algorithm 1.
#pragma once

#include <cstdint>
#include <vector>

#include "text/pair_table.h"

namespace hark {

// For one thread: its vectors are used again. Set symbols(), call merge(), then read the result.
class PairMerger {
  public:
    // The ids of the word's first symbols. An id without pairs, such as a negative one, stays.
    std::vector<int32_t>& symbols() { return symbols_; }

    // Joins neighbours, the pair of the lowest rank first, of equal ranks the leftmost. Every merge
    // that becomes possible enters a heap once: O(n log n) for n symbols.
    void merge(const PairTable& pairs);

    // Calls take(id, first) for each part that is left; `first` is the index of its first symbol.
    template <class Take>
    void for_each(const Take& take) const {
        const auto n = static_cast<int32_t>(parts_.size());
        for (int32_t i = 0; i < n; i = parts_[static_cast<size_t>(i)].next)
            take(parts_[static_cast<size_t>(i)].id, i);
    }

  private:
    // A part of a word: a token and its neighbours, by index. A part that was joined to its left
    // neighbour is `joined`.
    struct Part {
        int32_t id, previous, next;
        bool joined;
    };
    // A merge that was possible when it was found; by then its parts may have changed.
    struct Candidate {
        int32_t rank, left, left_id, right_id, id;
        // The lowest rank first, of equal ones the leftmost.
        bool operator<(const Candidate& other) const {
            return rank != other.rank ? rank > other.rank : left > other.left;
        }
    };

    void consider(const PairTable& pairs, int32_t left);

    std::vector<int32_t> symbols_;
    std::vector<Part> parts_;
    std::vector<Candidate> candidates_;  // a heap
};

}  // namespace hark
