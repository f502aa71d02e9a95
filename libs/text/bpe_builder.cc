#include "text/bpe_builder.h"

#include <algorithm>

#include "core/error.h"
#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace hark {
namespace {

bool looks_special(const std::string& content) {
    return content.size() > 4 && content.starts_with("<|") && content.ends_with("|>");
}

}  // namespace

void BpeBuilder::token(const std::string& spelling, int32_t id) {
    const auto [known, is_new] = ids_.try_emplace(spelling, id);
    require(is_new, where_, ": the token '", spelling, "' has the ids ", known->second, " and ",
            id);
}

void BpeBuilder::merge(const std::string& left, const std::string& right,
                       const std::string& where) {
    const uint64_t pair = pair_key(id_of(left, where), id_of(right, where));
    const int32_t joined = id_of(left + right, where);
    merges_.try_emplace(pair, PairTable::Merge{static_cast<int32_t>(merges_.size()), joined});
    made_.push_back(joined);
}

void BpeBuilder::merge(std::string_view pair, const std::string& where) {
    const size_t space = pair.find(' ');
    require(space != pair.npos && pair.find(' ', space + 1) == pair.npos, where,
            ": expected two tokens and a space between them, found '", pair, "'");
    merge(std::string(pair.substr(0, space)), std::string(pair.substr(space + 1)), where);
}

void BpeBuilder::added(const std::string& content, int32_t id, bool special) {
    added_.push_back({content, id, special || looks_special(content)});
}

void BpeBuilder::special(const std::string& content) {
    const auto found = ids_.find(content);
    if (found != ids_.end()) added(content, found->second, true);
}

Bpe BpeBuilder::finish(bool prefix_space, bool ignore_merges) {
    Bpe bpe;
    bpe.prefix_space_ = prefix_space;
    // What looks like a special token and comes from no merge was put there as one.
    std::sort(made_.begin(), made_.end());
    for (const auto& [token, id] : ids_)
        if (looks_special(token) && !std::binary_search(made_.begin(), made_.end(), id))
            added(token, id, true);
    size_table(bpe);
    for (const auto& [token, id] : ids_) {
        Bpe::Token& entry = bpe.tokens_[id];
        require(!entry.used, where_, ": two tokens have the id ", id);
        entry = {bytes_from_alphabet(token), true, false};
        if (ignore_merges) bpe.words_[entry.bytes] = id;
    }
    place_added(bpe);
    place_bytes(bpe);
    bpe.merges_ = PairTable(merges_);
    return bpe;
}

int32_t BpeBuilder::id_of(const std::string& token, const std::string& where) const {
    const auto found = ids_.find(token);
    require(found != ids_.end(), where, ": a merge needs the token '", token,
            "', which the vocabulary lacks");
    return found->second;
}

// Ids index a table, so that a large one among few tokens is refused, not obeyed.
void BpeBuilder::size_table(Bpe& bpe) const {
    const size_t entries = ids_.size() + added_.size();
    int64_t largest = -1;
    for (const auto& [token, id] : ids_) largest = std::max<int64_t>(largest, id);
    for (const Added& token : added_) largest = std::max<int64_t>(largest, token.id);
    require(static_cast<size_t>(largest + 1) <= 2 * entries + 1024, where_, ": the id ", largest,
            " is out of range for ", entries, " tokens");
    bpe.tokens_.resize(static_cast<size_t>(largest + 1));
}

void BpeBuilder::place_added(Bpe& bpe) const {
    for (const Added& token : added_) {
        Bpe::Token& entry = bpe.tokens_[token.id];
        const auto known = ids_.find(token.content);
        const bool fits = known != ids_.end() ? known->second == token.id
                                              : !entry.used || entry.bytes == token.content;
        require(fits, where_, ": the added token '", token.content, "' has the id ", token.id,
                ", which the vocabulary gives otherwise");
        const auto [seen, is_new] = bpe.specials_.try_emplace(token.content, token.id);
        require(is_new || seen->second == token.id, where_, ": the added token '", token.content,
                "' has the ids ", seen->second, " and ", token.id);
        if (!entry.used) entry = {token.content, true, false};
        entry.special = entry.special || token.special;
    }
}

void BpeBuilder::place_bytes(Bpe& bpe) const {
    const auto alphabet = byte_alphabet();
    for (size_t byte = 0; byte < 256; ++byte) {
        std::string character;
        append_code_point(character, alphabet[byte]);
        const auto found = ids_.find(character);
        require(found != ids_.end(), where_,
                ": expected a token for each of the 256 bytes, found none for byte ", byte, " ('",
                character, "')");
        bpe.byte_ids_[byte] = found->second;
    }
}

// Joining two tokens is allowed where the result is a token, and its rank is the merge's: every
// cut of every token into two tokens is a pair that may merge.
Bpe BpeBuilder::ranked(const std::unordered_map<std::string, int32_t>& ranks,
                       const std::string& where) {
    Bpe bpe;
    std::unordered_map<uint64_t, PairTable::Merge> merges;
    for (const auto& [bytes, rank] : ranks) {
        if (static_cast<size_t>(rank) >= bpe.tokens_.size()) bpe.tokens_.resize(size_t(rank) + 1);
        require(!bpe.tokens_[rank].used, where, ": two tokens have the rank ", rank);
        bpe.tokens_[rank] = {bytes, true, false};
        for (size_t cut = 1; cut < bytes.size(); ++cut) {
            const auto left = ranks.find(bytes.substr(0, cut));
            if (left == ranks.end()) continue;
            const auto right = ranks.find(bytes.substr(cut));
            if (right == ranks.end()) continue;
            merges[pair_key(left->second, right->second)] = {rank, rank};
        }
    }
    bpe.merges_ = PairTable(merges);
    for (size_t byte = 0; byte < 256; ++byte) {
        const auto found = ranks.find(std::string(1, static_cast<char>(byte)));
        require(found != ranks.end(), where,
                ": expected a token for each of the 256 bytes, found none for byte ", byte);
        bpe.byte_ids_[byte] = found->second;
    }
    bpe.words_ = ranks;
    bpe.words_.erase("");
    return bpe;
}

}  // namespace hark
