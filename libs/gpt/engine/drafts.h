// Tokens that a text may have next, guessed from itself: a summary quotes its source.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hark::gpt {

// At most `most` tokens: those that followed the last earlier place with the same last three
// tokens, or two. Empty if there is none. Source: Saxena 2023, prompt lookup decoding.
std::vector<int32_t> draft_tokens(std::span<const int32_t> tokens, int64_t most);

}  // namespace hark::gpt
