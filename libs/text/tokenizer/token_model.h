// The part of a tokenizer that gives a word its ids.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/pair_merger.h"

namespace hark {

inline constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // U+2581, a space in a vocabulary

// A map from text that is searched by views.
struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using TokenIds = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

// The best way to a byte of a word: where its last piece begins, and the piece.
struct PathNode {
    double score = 0;
    int32_t begin = -1;  // -1: no way leads here
    int32_t id = -1;
};

// What encoding a word needs, used again; for one thread.
struct ModelWorkspace {
    PairMerger merger;
    std::vector<std::pair<uint32_t, uint32_t>> spans;  // of symbols: begin and end in the word
    std::vector<PathNode> path;
    std::vector<int32_t> ids;
};

class TokenModel {
  public:
    virtual ~TokenModel() = default;
    // Appends the ids of a word, valid UTF-8 that is not empty. In byte-level models it is the
    // word's own bytes, not their alphabet's characters.
    virtual void encode(std::string_view word, ModelWorkspace& space,
                        std::vector<int32_t>& ids) const = 0;
    // Where the part of a word that begins at `at` ends, if it has the same ids alone.
    virtual size_t part_end(std::string_view word, size_t) const { return word.size(); }
};

// The ids of <0x00> to <0xFF>, -1 for a byte that has none.
std::array<int32_t, 256> byte_token_ids(const TokenIds& ids);
// The byte that such a token stands for, -1 for every other token.
int byte_of_token(std::string_view token);

// The end of the part at `at` in a text where no token has kMetaspace after another character.
size_t metaspace_part_end(std::string_view word, size_t at);
// Whether a token has kMetaspace after another character.
bool has_inner_metaspace(std::string_view token);

}  // namespace hark
