#include "text/tokenizer/pair_merger.h"

#include <algorithm>

#include "core/error.h"

namespace hark {

void PairMerger::consider(const PairTable& pairs, int32_t left) {
    const auto end = static_cast<int32_t>(parts_.size());
    if (left < 0 || parts_[left].next >= end) return;
    const int32_t left_id = parts_[left].id, right_id = parts_[parts_[left].next].id;
    const PairTable::Merge* merge = pairs.find(pair_key(left_id, right_id));
    if (!merge) return;
    candidates_.push_back({merge->rank, left, left_id, right_id, merge->id});
    std::push_heap(candidates_.begin(), candidates_.end());
}

void PairMerger::merge(const PairTable& pairs) {
    require(symbols_.size() < INT32_MAX, "a word of ", symbols_.size(),
            " symbols cannot be tokenised");
    const auto n = static_cast<int32_t>(symbols_.size());
    parts_.resize(symbols_.size());
    for (int32_t i = 0; i < n; ++i) parts_[i] = {symbols_[i], i - 1, i + 1, false};
    candidates_.clear();
    for (int32_t i = 0; i + 1 < n; ++i) consider(pairs, i);
    while (!candidates_.empty()) {
        const Candidate best = candidates_.front();
        std::pop_heap(candidates_.begin(), candidates_.end());
        candidates_.pop_back();
        Part& left = parts_[best.left];
        if (left.joined || left.id != best.left_id || left.next >= n ||
            parts_[left.next].id != best.right_id)
            continue;
        Part& right = parts_[left.next];
        left.id = best.id;
        left.next = right.next;
        right.joined = true;
        if (left.next < n) parts_[left.next].previous = best.left;
        consider(pairs, left.previous);
        consider(pairs, best.left);
    }
}

}  // namespace hark
