#include "text/tokenizer/bpe_model.h"

#include "core/error.h"
#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace hark {

BpeModel::BpeModel(BpeModelParts parts) : parts_(std::move(parts)) {
    fallback_ids_ = byte_token_ids(parts_.vocab);
    for (size_t byte = 0; byte < 256; ++byte) {
        const auto found = parts_.vocab.find(spell_bytes(std::string(1, static_cast<char>(byte))));
        byte_ids_[byte] = found == parts_.vocab.end() ? -1 : found->second;
    }
    cuts_ = !parts_.byte_level && !parts_.ignore_merges && parts_.vocab.contains(kMetaspace);
    while (!parts_.vocab.empty()) {  // a vocabulary is large: no token is in two tables
        auto entry = parts_.vocab.extract(parts_.vocab.begin());
        const std::string& token = entry.key();
        if (!is_valid_utf8(token) || token.empty()) continue;
        size_t at = 0;
        const char32_t first = next_code_point(token, at);
        if (at == token.size()) character_ids_[first] = entry.mapped();
        if (has_inner_metaspace(token)) cuts_ = false;
        if (!parts_.ignore_merges) continue;
        if (parts_.byte_level) entry.key() = bytes_from_alphabet(token);
        words_.insert(std::move(entry));
    }
}

size_t BpeModel::part_end(std::string_view word, size_t at) const {
    return cuts_ ? metaspace_part_end(word, at) : word.size();
}

void BpeModel::encode(std::string_view word, ModelWorkspace& space,
                      std::vector<int32_t>& ids) const {
    if (parts_.ignore_merges) {
        const auto whole = words_.find(word);
        if (whole != words_.end()) return ids.push_back(whole->second);
    }
    std::vector<int32_t>& symbols = space.merger.symbols();
    symbols.clear();
    parts_.byte_level ? byte_symbols(word, symbols) : character_symbols(word, symbols);
    space.merger.merge(parts_.merges);
    space.merger.for_each([&](int32_t id, int32_t) { ids.push_back(id); });
}

void BpeModel::byte_symbols(std::string_view word, std::vector<int32_t>& symbols) const {
    bool fused = false;  // the last symbol is the unknown token, which takes in the next
    for (const char c : word) {
        const int32_t known = byte_ids_[static_cast<unsigned char>(c)];
        if (known >= 0)
            symbols.push_back(known);
        else if (parts_.unknown >= 0 && !fused)
            symbols.push_back(parts_.unknown);
        fused = known < 0 && parts_.fuse_unknown;
    }
}

// An unknown token waits for the next known character: bytes that fall back pass it.
void BpeModel::character_symbols(std::string_view word, std::vector<int32_t>& symbols) const {
    int waiting = 0;
    for (size_t at = 0; at < word.size();) {
        const size_t begin = at;
        const auto known = character_ids_.find(next_code_point(word, at));
        if (known != character_ids_.end()) {
            symbols.insert(symbols.end(), static_cast<size_t>(waiting), parts_.unknown);
            waiting = 0;
            symbols.push_back(known->second);
            continue;
        }
        const auto byte_id = [&](size_t i) {
            return fallback_ids_[static_cast<unsigned char>(word[i])];
        };
        bool falls_back = parts_.byte_fallback;
        for (size_t i = begin; i < at; ++i) falls_back = falls_back && byte_id(i) >= 0;
        if (falls_back) {
            for (size_t i = begin; i < at; ++i) symbols.push_back(byte_id(i));
            continue;
        }
        if (parts_.unknown < 0) continue;
        // Without fusing, the earlier one is placed where the later one is found.
        if (waiting > 0 && !parts_.fuse_unknown) symbols.push_back(parts_.unknown);
        waiting = 1;
    }
    symbols.insert(symbols.end(), static_cast<size_t>(waiting), parts_.unknown);
}

int32_t MergeList::id_of(std::string_view token, const std::string& where) const {
    const auto found = vocab_.find(token);
    require(found != vocab_.end(), where, ": a merge needs the token '", token,
            "', which the vocabulary lacks");
    return found->second;
}

void MergeList::add(std::string_view left, std::string_view right, const std::string& where) {
    const uint64_t pair = pair_key(id_of(left, where), id_of(right, where));
    const int32_t joined = id_of(std::string(left).append(right), where);
    merges_[pair] = {count_++, joined};  // of equal ones the last counts
}

void MergeList::add(std::string_view pair, const std::string& where) {
    const size_t space = pair.find(' ', 1);
    require(space != pair.npos && pair.find(' ', space + 1) == pair.npos, where,
            ": expected two tokens and a space between them, found '", pair, "'");
    add(pair.substr(0, space), pair.substr(space + 1), where);
}

}  // namespace hark
