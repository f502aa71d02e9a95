#include "text/bpe_encoder.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "text/split.h"
#include "text/utf8.h"

namespace hark {
namespace {

constexpr size_t kFirstSlots = 256;
constexpr size_t kMaxSlots = size_t{1} << 17;  // what is known then takes 8 MB at most
constexpr size_t kMaxKnownWord = 32;           // bytes; longer ones rarely repeat

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

// Of all bytes of the word; short ones are read as two halves that overlap.
uint64_t hash_of(std::string_view word) {
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

}  // namespace

BpeEncoder::BpeEncoder(const Bpe& bpe) : bpe_(bpe), known_(kFirstSlots) {}

void BpeEncoder::encode(std::string_view text, std::vector<int32_t>& ids, bool begins) {
    std::string copy;
    if (begins && bpe_.prefix_space_ && !text.starts_with(' '))
        text = copy = std::string(1, ' ').append(text);
    if (!is_valid_utf8(text)) text = copy = replace_invalid(text);
    for (size_t at = 0; at < text.size();) {
        const size_t end = word_end(text, at);
        encode_word(text.substr(at, end - at), ids);
        at = end;
    }
}

void BpeEncoder::encode_word(std::string_view word, std::vector<int32_t>& ids) {
    if (word.size() > kMaxKnownWord) return merge_word(word, ids);
    const uint64_t hash = hash_of(word);
    const Known& known = slot_of(word, hash);
    if (known.length == 0) {
        const size_t before = ids.size();
        merge_word(word, ids);
        return cache(word, hash, std::span(ids).subspan(before));
    }
    if (known.count == 1) return ids.push_back(static_cast<int32_t>(known.ids));
    const auto first = ids_.begin() + known.ids;
    ids.insert(ids.end(), first, first + known.count);
}

BpeEncoder::Known& BpeEncoder::slot_of(std::string_view word, uint64_t hash) {
    for (size_t slot = hash;; ++slot) {
        Known& known = known_[slot & (known_.size() - 1)];
        if (known.length == 0) return known;
        if (known.hash == hash && known.length == word.size() &&
            std::memcmp(chars_.data() + known.at, word.data(), word.size()) == 0)
            return known;
    }
}

void BpeEncoder::cache(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
    if (++used_ > known_.size() / 2) make_room();
    Known& slot = slot_of(word, hash);
    slot = {hash, static_cast<uint32_t>(chars_.size()), static_cast<uint32_t>(word.size()),
            static_cast<uint32_t>(ids.size() == 1 ? ids[0] : ids_.size()),
            static_cast<uint32_t>(ids.size())};
    chars_.append(word);
    if (ids.size() > 1) ids_.insert(ids_.end(), ids.begin(), ids.end());
}

// A larger table or, at the bound, an empty one: most words of a text are soon known again.
void BpeEncoder::make_room() {
    std::vector<Known> old(std::min(2 * known_.size(), kMaxSlots));
    used_ = 1;
    if (known_.size() < kMaxSlots) {
        old.swap(known_);
        for (const Known& known : old) {
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

void BpeEncoder::consider(int32_t left, int32_t end) {
    if (left < 0 || parts_[left].next >= end) return;
    const int32_t left_id = parts_[left].id, right_id = parts_[parts_[left].next].id;
    const PairTable::Merge* merge = bpe_.merges_.find(pair_key(left_id, right_id));
    if (!merge) return;
    candidates_.push_back({merge->rank, left, left_id, right_id, merge->id});
    std::push_heap(candidates_.begin(), candidates_.end());
}

// Every merge that becomes possible enters a heap once: O(n log n) for a word of n bytes, however
// long it is.
void BpeEncoder::merge_word(std::string_view word, std::vector<int32_t>& ids) {
    require(word.size() <= INT32_MAX, "a word of ", word.size(), " bytes cannot be tokenised");
    const auto n = static_cast<int32_t>(word.size());
    if (!bpe_.words_.empty()) {
        const auto whole = bpe_.words_.find(std::string(word));
        if (whole != bpe_.words_.end()) return ids.push_back(whole->second);
    }
    parts_.resize(word.size());
    for (int32_t i = 0; i < n; ++i)
        parts_[i] = {bpe_.byte_ids_[static_cast<unsigned char>(word[i])], i - 1, i + 1};
    candidates_.clear();
    for (int32_t i = 0; i + 1 < n; ++i) consider(i, n);
    while (!candidates_.empty()) {
        const Candidate best = candidates_.front();
        std::pop_heap(candidates_.begin(), candidates_.end());
        candidates_.pop_back();
        Part& left = parts_[best.left];
        if (left.id != best.left_id || left.next >= n || parts_[left.next].id != best.right_id)
            continue;
        Part& right = parts_[left.next];
        left.id = best.id;
        left.next = right.next;
        right.id = -1;
        if (left.next < n) parts_[left.next].previous = best.left;
        consider(left.previous, n);
        consider(best.left, n);
    }
    for (int32_t i = 0; i < n; i = parts_[i].next) ids.push_back(parts_[i].id);
}

}  // namespace hark
