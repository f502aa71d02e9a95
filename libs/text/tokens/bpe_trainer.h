// Learns a byte-level byte-pair vocabulary from text.
// Source: Sennrich et al. 2016, algorithm 1; which of equally frequent pairs is merged, and what
// happens where two merges make the same token, as in the tokenizers library's BpeTrainer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hark {

// Ids 0 to 255 are the bytes in the order of their characters (byte_alphabet.h), as in GPT-2.
struct BpeVocabulary {
    std::vector<std::string> tokens;  // their bytes, by id
    std::vector<std::pair<int32_t, int32_t>> merges;
};

class BpeTrainer {
  public:
    // Counts the words of a text, or of a part of one that last_word_cut() cut off. Invalid UTF-8
    // is seen as U+FFFD.
    void add(std::string_view text);

    // Merges the most frequent pair, of equal ones that with the smaller ids, until there are
    // `size` tokens, at least 256, or no pair is left.
    BpeVocabulary train(int32_t size) const;

  private:
    std::unordered_map<std::string, int64_t> words_;
};

}  // namespace hark
