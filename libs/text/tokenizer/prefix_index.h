// Strings, found where a text begins with them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hark {

// A trie without nodes: the strings are sorted, and those that share a prefix are neighbours.
class PrefixIndex {
  public:
    PrefixIndex() = default;
    // No string may be empty or be there twice. `value` comes back from a search.
    explicit PrefixIndex(std::vector<std::pair<std::string, int32_t>> strings)
        : strings_(std::move(strings)) {
        std::sort(strings_.begin(), strings_.end());
        for (const auto& [text, value] : strings_) ++first_[byte_at(text, 0) + 1];
        for (size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
    }

    bool empty() const { return strings_.empty(); }

    // Calls found(length, value) for each string that `text` has at `at`, the shortest first.
    template <class Found>
    void for_each_at(std::string_view text, size_t at, const Found& found) const {
        if (at >= text.size()) return;
        auto low = strings_.begin() + first_[byte_at(text, at)];
        auto high = strings_.begin() + first_[byte_at(text, at) + 1];
        for (size_t depth = 1; low != high; ++depth) {
            if (low->first.size() == depth) {
                found(depth, low->second);
                if (++low == high) return;
            }
            if (at + depth >= text.size()) return;
            const size_t byte = byte_at(text, at + depth);
            low = std::partition_point(
                low, high, [&](const auto& entry) { return byte_at(entry.first, depth) < byte; });
            high = std::partition_point(
                low, high, [&](const auto& entry) { return byte_at(entry.first, depth) == byte; });
        }
    }

    // The longest string that `text` has at `at`: its length and value, {0, -1} if there is none.
    std::pair<size_t, int32_t> longest_at(std::string_view text, size_t at) const {
        std::pair<size_t, int32_t> longest{0, -1};
        for_each_at(text, at, [&](size_t length, int32_t value) { longest = {length, value}; });
        return longest;
    }

  private:
    static size_t byte_at(std::string_view text, size_t at) {
        return static_cast<unsigned char>(text[at]);
    }

    std::vector<std::pair<std::string, int32_t>> strings_;
    std::array<uint32_t, 257> first_{};  // where the strings of each first byte begin
};

}  // namespace hark
