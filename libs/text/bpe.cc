#include "text/bpe.h"

#include <queue>

#include "core/error.h"
#include "text/split.h"
#include "text/utf8.h"

namespace hark {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// A part of a word: a token and its neighbours, by index. A part that was joined to its left
// neighbour has id -1.
struct Part {
    int32_t id, previous, next;
};

// A merge that was possible when it was found; by then its parts may have changed.
struct Candidate {
    int32_t rank, left, left_id, right_id, id;
    // The lowest rank first, of equal ones the leftmost.
    bool operator<(const Candidate& other) const {
        return rank != other.rank ? rank > other.rank : left > other.left;
    }
};

}  // namespace

std::vector<int32_t> Bpe::encode(std::string_view text) const {
    std::string copy;
    if (prefix_space_ && !text.starts_with(' ')) text = copy = std::string(1, ' ').append(text);
    if (!is_valid_utf8(text)) text = copy = replace_invalid(text);
    std::vector<int32_t> ids;
    ids.reserve(text.size() / 3);
    for (std::string_view word : split_words(text)) encode_word(word, ids);
    return ids;
}

// Every merge that becomes possible enters a heap once: O(n log n) for a word of n bytes, however
// long it is.
void Bpe::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    require(word.size() <= INT32_MAX, "a word of ", word.size(), " bytes cannot be tokenised");
    const auto n = static_cast<int32_t>(word.size());
    if (!words_.empty()) {
        const auto whole = words_.find(std::string(word));
        if (whole != words_.end()) {
            ids.push_back(whole->second);
            return;
        }
    }
    std::vector<Part> parts(word.size());
    for (int32_t i = 0; i < n; ++i)
        parts[i] = {byte_ids_[static_cast<unsigned char>(word[i])], i - 1, i + 1};

    std::priority_queue<Candidate> candidates;
    const auto consider = [&](int32_t left) {
        if (left < 0 || parts[left].next >= n) return;
        const int32_t left_id = parts[left].id, right_id = parts[parts[left].next].id;
        const auto merge = merges_.find(pair_key(left_id, right_id));
        if (merge == merges_.end()) return;
        candidates.push({merge->second.rank, left, left_id, right_id, merge->second.id});
    };
    for (int32_t i = 0; i + 1 < n; ++i) consider(i);
    while (!candidates.empty()) {
        const Candidate best = candidates.top();
        candidates.pop();
        Part& left = parts[best.left];
        if (left.id != best.left_id || left.next >= n || parts[left.next].id != best.right_id)
            continue;
        Part& right = parts[left.next];
        left.id = best.id;
        left.next = right.next;
        right.id = -1;
        if (left.next < n) parts[left.next].previous = best.left;
        consider(left.previous);
        consider(best.left);
    }
    for (int32_t i = 0; i < n; i = parts[i].next) ids.push_back(parts[i].id);
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
