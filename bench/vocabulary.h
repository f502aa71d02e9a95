// Vocabularies as large as those of published models, of a small one's tokens.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace hark::bench {

// The file's tokens, then pairs of them until there are `count`: pieces of 24 bytes at most, drawn
// with a fixed seed. Larger vocabularies have such tokens too: two words, a word and its ending.
// The last one ends texts. Throws Error as Tokenizer::load() does.
Tokenizer vocabulary_of(const std::string& path, int64_t count);

}  // namespace hark::bench
