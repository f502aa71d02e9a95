// What a tokenizer's files say, as their readers hand it to Tokenizer.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/decoding.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/token_model.h"

namespace hark {

struct TokenizerParts {
    std::vector<std::string> spellings;  // by id; empty for an id without a token
    std::vector<AddedToken> added;
    Normalizer normalizer;
    PreTokenSteps pre_tokenizer;
    std::shared_ptr<const TokenModel> model;
    DecodingTable decoding;              // as long as `spellings`
    std::vector<int32_t> before, after;  // what add_specials puts around a text
    Tokenizer::SpecialIds special;
    bool cuts_words = false;  // the only step is GPT-2's split
};

// Ids index tables, so that a large one among few tokens is refused. Throws Error naming `where`.
void check_largest_id(int64_t largest, size_t tokens, const std::string& where);

// Fills parts.spellings and what parts.decoding says of each id, from a vocabulary and parts.added.
// Throws Error where ids do not fit.
void place_tokens(const TokenIds& vocab, const std::string& where, TokenizerParts& parts);

// Reads tokenizer_config.json into `special`, and from its add_bos_token and add_eos_token, where
// its tokenizer_class heeds them, what is put around a text.
void apply_tokenizer_config(std::string_view config, const std::string& where,
                            TokenizerParts& parts);

// The id that a token has in parts, or nullopt.
std::optional<int32_t> find_token(const TokenizerParts& parts, std::string_view token);

}  // namespace hark
