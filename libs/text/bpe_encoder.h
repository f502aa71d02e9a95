// Encodes one text after another: words that come again are looked up, not merged again.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/tokenizer/pair_merger.h"
#include "text/tokenizer/word_cache.h"

namespace hark {

// For one thread; the vocabulary, which must outlive it, is shared.
class BpeEncoder {
  public:
    explicit BpeEncoder(const Bpe& bpe) : bpe_(bpe) {}

    // Appends the ids of `text`, as Bpe::encode gives them. Where a text comes in parts, cut by
    // last_word_cut(), only its first part `begins` it.
    void encode(std::string_view text, std::vector<int32_t>& ids, bool begins = true);

  private:
    void merge_word(std::string_view word, std::vector<int32_t>& ids);

    const Bpe& bpe_;
    WordCache cache_;
    PairMerger merger_;
};

}  // namespace hark
