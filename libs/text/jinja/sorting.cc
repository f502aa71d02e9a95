// sorted() for values that can fail to compare.
#include <algorithm>

#include "text/jinja/operations.h"

namespace hark::jinja {

namespace {

// Merges two sorted halves. std::stable_sort would need an order without errors and NaN.
void merge_sort(Interpreter& in, std::vector<std::pair<Value, Value>>& items, size_t begin,
                size_t end, bool reverse) {
    if (end - begin < 2) return;
    const size_t middle = begin + (end - begin) / 2;
    merge_sort(in, items, begin, middle, reverse);
    merge_sort(in, items, middle, end, reverse);
    std::vector<std::pair<Value, Value>> merged;
    size_t left = begin, right = middle;
    while (left < middle && right < end) {
        const auto sign = reverse ? order(in, items[left].first, items[right].first, "<")
                                  : order(in, items[right].first, items[left].first, "<");
        const bool takes_right = sign && *sign < 0;
        merged.push_back(std::move(items[takes_right ? right++ : left++]));
    }
    while (left < middle) merged.push_back(std::move(items[left++]));
    while (right < end) merged.push_back(std::move(items[right++]));
    std::move(merged.begin(), merged.end(), items.begin() + static_cast<ptrdiff_t>(begin));
}

}  // namespace

Items sorted(Interpreter& in, std::vector<std::pair<Value, Value>> keyed, bool reverse) {
    merge_sort(in, keyed, 0, keyed.size(), reverse);
    Items items;
    for (auto& [key, item] : keyed) items.push_back(std::move(item));
    return items;
}

}  // namespace hark::jinja
