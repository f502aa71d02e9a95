#include "gpt/train/synthetic_tokens.h"

#include "core/random.h"

namespace hark::gpt {

void SyntheticTokens::copy(size_t first, size_t count, int32_t* to) const {
    constexpr uint64_t kWords = 32, kWordTokens = 7;
    const uint64_t dictionary = split_mix(seed_, 1), text = split_mix(seed_, 2 + part_);
    for (size_t i = first; i < first + count; ++i) {
        const uint64_t word = split_mix(text, i / kWordTokens) % kWords;
        const uint64_t token = split_mix(dictionary, word * kWordTokens + i % kWordTokens);
        *to++ = static_cast<int32_t>(token % n_vocab_);
    }
}

}  // namespace hark::gpt
