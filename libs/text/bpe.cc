#include "text/bpe.h"

#include <algorithm>

#include "core/error.h"
#include "text/bpe_encoder.h"

namespace hark {
std::vector<int32_t> Bpe::encode(std::string_view text) const {
    std::vector<int32_t> ids;
    ids.reserve(text.size() / 3);
    BpeEncoder(*this).encode(text, ids);
    return ids;
}

std::string Bpe::decode(std::span<const int32_t> ids, bool with_specials) const {
    std::string bytes;
    for (int32_t id : ids)
        if (with_specials || !is_special(id)) bytes += bytes_of(id);
    return bytes;
}

const std::string& Bpe::bytes_of(int32_t id) const {
    require(id >= 0 && id < vocab_size() && tokens_[id].used, "token id ", id,
            " is not in the vocabulary of ", vocab_size());
    return tokens_[id].bytes;
}

std::vector<std::pair<int32_t, int32_t>> Bpe::merges() const {
    std::vector<std::pair<int32_t, uint64_t>> ranked;
    merges_.for_each([&](uint64_t key, const PairTable::Merge& merge) {
        ranked.push_back({merge.rank, key});
    });
    std::sort(ranked.begin(), ranked.end());
    std::vector<std::pair<int32_t, int32_t>> merges;
    for (const auto& [rank, key] : ranked)
        merges.push_back({static_cast<int32_t>(key >> 32), static_cast<int32_t>(key)});
    return merges;
}

std::optional<int32_t> Bpe::special(const std::string& content) const {
    const auto found = specials_.find(content);
    return found == specials_.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

bool Bpe::is_special(int32_t id) const {
    return id >= 0 && id < vocab_size() && tokens_[id].special;
}

void Bpe::add_special(const std::string& content, int32_t id) {
    require(id >= 0 && id < INT32_MAX, "special token '", content, "': its id ", id,
            " is out of range");
    const auto known = specials_.find(content);
    require(known == specials_.end() || known->second == id, "special token '", content,
            "' has two ids");
    if (id >= vocab_size()) tokens_.resize(static_cast<size_t>(id) + 1);
    Token& token = tokens_[id];
    require(!token.used || token.bytes == content, "special token '", content, "': its id ", id,
            " is the token '", token.bytes, "'");
    token = {content, true, true};
    specials_[content] = id;
}

}  // namespace hark
