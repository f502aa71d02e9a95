#include "text/tokenizer/word_cache.h"

#include <algorithm>
#include <cstring>

namespace hark {
namespace {

constexpr size_t kFirstSlots = 256;
constexpr size_t kMaxSlots = size_t{1} << 17;  // what is known then takes 8 MB at most

uint64_t mix(uint64_t a, uint64_t b) {
    const auto product =
        static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD6E8FEB86659FD93u);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

template <class T>
uint64_t load(const char* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

}  // namespace

// Of all bytes of the word; short ones are read as two halves that overlap.
uint64_t WordCache::hash_of(std::string_view word) {
    const char* begin = word.data();
    const size_t n = word.size();
    if (n < 4)
        return mix(n << 24 | load<uint8_t>(begin) << 16 | load<uint8_t>(begin + n / 2) << 8 |
                       load<uint8_t>(begin + n - 1),
                   n);
    if (n <= 8) return mix(load<uint32_t>(begin) | load<uint32_t>(begin + n - 4) << 32, n);
    uint64_t hash = n;
    for (size_t at = 0; at + 8 < n; at += 8) hash = mix(load<uint64_t>(begin + at), hash);
    return mix(load<uint64_t>(begin + n - 8), hash);
}

WordCache::WordCache() : known_(kFirstSlots) {}

WordCache::CachedWord& WordCache::slot_of(std::string_view word, uint64_t hash) {
    for (size_t slot = hash;; ++slot) {
        CachedWord& known = known_[slot & (known_.size() - 1)];
        if (known.length == 0) return known;
        if (known.hash == hash && known.length == word.size() &&
            std::memcmp(chars_.data() + known.at, word.data(), word.size()) == 0)
            return known;
    }
}

void WordCache::insert(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
    if (++used_ > known_.size() / 2) make_room();
    CachedWord& slot = slot_of(word, hash);
    slot = {hash, static_cast<uint32_t>(chars_.size()), static_cast<uint32_t>(word.size()),
            static_cast<uint32_t>(ids.size() == 1 ? ids[0] : ids_.size()),
            static_cast<uint32_t>(ids.size())};
    chars_.append(word);
    if (ids.size() > 1) ids_.insert(ids_.end(), ids.begin(), ids.end());
}

// A larger table or, at the bound, an empty one: most words of a text are soon known again.
void WordCache::make_room() {
    std::vector<CachedWord> old(std::min(2 * known_.size(), kMaxSlots));
    used_ = 1;
    if (known_.size() < kMaxSlots) {
        old.swap(known_);
        for (const CachedWord& known : old) {
            if (known.length == 0) continue;
            slot_of({chars_.data() + known.at, known.length}, known.hash) = known;
            ++used_;
        }
        return;
    }
    known_.swap(old);
    chars_.clear();
    ids_.clear();
}

}  // namespace hark
