// Words whose ids are known: words that come again are looked up, not merged again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hark {

// For one thread. Its memory is bounded: 8 MB and the words' bytes and ids.
class WordCache {
  public:
    static constexpr size_t kMaxWord = 32;  // bytes; longer words rarely repeat

    WordCache();

    // Appends the word's ids: those that are known, or what `make()` appends, which are then known.
    template <class Make>
    void append(std::string_view word, std::vector<int32_t>& ids, const Make& make) {
        if (word.empty() || word.size() > kMaxWord) return make();
        const uint64_t hash = hash_of(word);
        const CachedWord& known = slot_of(word, hash);
        if (known.length == 0) {
            const size_t before = ids.size();
            make();
            return insert(word, hash, std::span(ids).subspan(before));
        }
        if (known.count == 1) return ids.push_back(static_cast<int32_t>(known.ids));
        const auto first = ids_.begin() + known.ids;
        ids.insert(ids.end(), first, first + known.count);
    }

  private:
    // A word whose ids are known. Its bytes are in chars_, its ids in ids_; a single id is here.
    struct CachedWord {
        uint64_t hash = 0;
        uint32_t at = 0;
        uint32_t length = 0;  // 0: the slot is free
        uint32_t ids = 0;
        uint32_t count = 0;
    };

    static uint64_t hash_of(std::string_view word);
    CachedWord& slot_of(std::string_view word, uint64_t hash);
    void insert(std::string_view word, uint64_t hash, std::span<const int32_t> ids);
    void make_room();

    std::vector<CachedWord> known_;  // a hash table, open addressing, a power of two of slots
    size_t used_ = 0;           // of its slots
    std::string chars_;
    std::vector<int32_t> ids_;
};

}  // namespace hark
