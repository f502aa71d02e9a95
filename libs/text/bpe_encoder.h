// Encodes one text after another: words that come again are looked up, not merged again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe.h"

namespace hark {

// For one thread; the vocabulary, which must outlive it, is shared.
class BpeEncoder {
  public:
    explicit BpeEncoder(const Bpe& bpe);

    // Appends the ids of `text`, as Bpe::encode gives them. Where a text comes in parts, cut by
    // last_word_cut(), only its first part `begins` it.
    void encode(std::string_view text, std::vector<int32_t>& ids, bool begins = true);

  private:
    // A part of a word: a token and its neighbours, by index. A part that was joined to its left
    // neighbour has id -1.
    struct Part {
        int32_t id, previous, next;
    };
    // A merge that was possible when it was found; by then its parts may have changed.
    struct Candidate {
        int32_t rank, left, left_id, right_id, id;
        // The lowest rank first, of equal ones the leftmost.
        bool operator<(const Candidate& other) const {
            return rank != other.rank ? rank > other.rank : left > other.left;
        }
    };
    // A word whose ids are known. Its bytes are in chars_, its ids in ids_; a single id is
    // here.
    struct Known {
        uint64_t hash = 0;
        uint32_t at = 0;
        uint32_t length = 0;  // 0: the slot is free
        uint32_t ids = 0;
        uint32_t count = 0;
    };

    void encode_word(std::string_view word, std::vector<int32_t>& ids);
    void merge_word(std::string_view word, std::vector<int32_t>& ids);
    void consider(int32_t left, int32_t end);
    Known& slot_of(std::string_view word, uint64_t hash);
    void cache(std::string_view word, uint64_t hash, std::span<const int32_t> ids);
    void make_room();

    const Bpe& bpe_;
    std::vector<Part> parts_;
    std::vector<Candidate> candidates_;  // a heap
    std::vector<Known> known_;           // a hash table, open addressing, a power of two of slots
    size_t used_ = 0;                    // of its slots
    std::string chars_;
    std::vector<int32_t> ids_;
};

}  // namespace hark
