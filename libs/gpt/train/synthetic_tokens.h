// Tokens made from a seed, for a run without a file: `--train synthetic`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hark::gpt {

// The name of a token file that selects these tokens.
inline constexpr const char* kSynthetic = "synthetic";

// A dictionary of 32 words of 7 tokens each, and a text of its words in random order. A model that
// has learned the words has a loss of log(32) / 7 = 0.50; a new one of log(n_vocab).
class SyntheticTokens {
  public:
    static constexpr size_t kSize = size_t{1} << 20;

    // `part`: selects one of several texts from the same dictionary.
    SyntheticTokens(uint64_t seed, int64_t n_vocab, uint64_t part)
        : seed_(seed), n_vocab_(static_cast<uint64_t>(n_vocab)), part_(part) {}

    void copy(size_t first, size_t count, int32_t* to) const;

  private:
    uint64_t seed_, n_vocab_, part_;
};

}  // namespace hark::gpt
