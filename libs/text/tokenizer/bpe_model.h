// Byte-pair encoding by a list of merges, as tokenizer.json and GGUF's "gpt2" kind have it.
// Source: huggingface/tokenizers, tokenizers/src/models/bpe/model.rs.
#pragma once

#include <memory>

#include "text/tokenizer/token_model.h"

namespace hark {

struct BpeModelParts {
    TokenIds vocab;  // as the file spells them
    PairTable merges;
    bool byte_level = false;     // tokens are spelled in the byte alphabet
    bool ignore_merges = false;  // a word that is a token is that token
    bool byte_fallback = false;  // a character without a token becomes <0xXX> tokens
    bool fuse_unknown = false;   // unknown characters next to one another are one token
    int32_t unknown = -1;        // the token of what the vocabulary lacks; -1: it is left out
};

class BpeModel : public TokenModel {
  public:
    explicit BpeModel(BpeModelParts parts);
    void encode(std::string_view word, ModelWorkspace& space,
                std::vector<int32_t>& ids) const override;
    size_t part_end(std::string_view word, size_t at) const override;

  private:
    void byte_symbols(std::string_view word, std::vector<int32_t>& symbols) const;
    void character_symbols(std::string_view word, std::vector<int32_t>& symbols) const;

    BpeModelParts parts_;
    TokenIds words_;  // by their bytes, if merges are ignored
    std::array<int32_t, 256> byte_ids_{};
    std::unordered_map<char32_t, int32_t> character_ids_;
    std::array<int32_t, 256> fallback_ids_{};
    bool cuts_ = false;  // no merge makes a token that has kMetaspace after another character
};

// The merges of a file, collected: their order is their rank.
class MergeList {
  public:
    explicit MergeList(const TokenIds& vocab) : vocab_(vocab) {}
    // Throws Error beginning with `where` if a token or what the two make is not in the vocabulary.
    void add(std::string_view left, std::string_view right, const std::string& where);
    // The same from "left right".
    void add(std::string_view pair, const std::string& where);
    PairTable table() const { return PairTable(merges_); }

  private:
    int32_t id_of(std::string_view token, const std::string& where) const;

    const TokenIds& vocab_;
    std::unordered_map<uint64_t, PairTable::Merge> merges_;
    int32_t count_ = 0;
};

}  // namespace hark
