// Vocabularies that are a list of their tokens.
#include <algorithm>

#include "core/error.h"
#include "text/bpe_builder.h"
#include "text/byte_alphabet.h"

namespace hark {
namespace {

// The bound keeps a hostile file from costing the square of its size.
constexpr size_t kMaxListedToken = 512;

}  // namespace

Bpe Bpe::from_token_list(std::span<const std::string> tokens, const std::string& where) {
    const auto specials = std::find(tokens.begin(), tokens.end(), "<|endoftext|>");
    require(specials != tokens.end(), where, ": expected a token <|endoftext|>, found none in ",
            tokens.size());
    std::unordered_map<std::string, int32_t> ranks;
    int32_t id = 0;
    for (auto token = tokens.begin(); token != specials; ++token, ++id) {
        require(token->size() <= kMaxListedToken, where, ": token ", id,
                ": expected one of at most ", kMaxListedToken, " bytes, found ", token->size());
        require(ranks.try_emplace(bytes_from_alphabet(*token), id).second, where, ": token ", id,
                " ('", *token, "') is there already");
    }
    Bpe bpe = BpeBuilder::ranked(ranks, where);
    for (auto token = specials; token != tokens.end(); ++token, ++id) bpe.add_special(*token, id);
    return bpe;
}

}  // namespace hark
