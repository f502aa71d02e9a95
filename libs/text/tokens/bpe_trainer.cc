#include "text/tokens/bpe_trainer.h"

#include <algorithm>
#include <queue>
#include <span>

#include "core/error.h"
#include "text/byte_alphabet.h"
#include "text/pair_table.h"
#include "text/split.h"
#include "text/utf8.h"

namespace hark {
namespace {

constexpr int32_t kBytes = 256;

// Tokens of the bytes, in the order of their characters.
std::vector<std::string> byte_tokens() {
    const auto alphabet = byte_alphabet();
    std::vector<std::pair<char32_t, char>> order;
    for (int byte = 0; byte < kBytes; ++byte)
        order.emplace_back(alphabet[byte], static_cast<char>(byte));
    std::sort(order.begin(), order.end());
    std::vector<std::string> tokens;
    for (const auto& [character, byte] : order) tokens.emplace_back(1, byte);
    return tokens;
}

// The state of a training: words as lists of ids, how often each pair occurs, and a queue of pairs
// whose counts were right when they entered it.
class Merging {
  public:
    Merging(const std::unordered_map<std::string, int64_t>& words, int32_t size);
    BpeVocabulary run();

  private:
    struct Word {
        size_t begin;  // in ids_
        uint32_t length;
        int64_t count;
    };
    struct Entry {
        int64_t count;
        uint64_t pair;
        size_t places;  // in places_: the words in which it was found
        bool operator<(const Entry& other) const {
            return count != other.count ? count < other.count : pair > other.pair;
        }
    };
    // Words in which a pair has appeared since the last time it was queued.
    using Found = std::unordered_map<uint64_t, std::vector<uint32_t>>;

    int32_t token_for(int32_t left, int32_t right);
    void merge_in(uint32_t word, int32_t left, int32_t right, int32_t joined, Found& found);
    void appears(uint64_t pair, uint32_t word, int64_t count, Found& found);
    void enqueue(Found& found);

    const int32_t size_;
    std::vector<int32_t> ids_;
    std::vector<Word> words_;
    std::unordered_map<uint64_t, int64_t> counts_;
    std::priority_queue<Entry> queue_;
    std::vector<std::vector<uint32_t>> places_;
    std::unordered_map<std::string, int32_t> known_;  // tokens by their bytes
    BpeVocabulary vocabulary_;
};

Merging::Merging(const std::unordered_map<std::string, int64_t>& words, int32_t size)
    : size_(size) {
    vocabulary_.tokens = byte_tokens();
    int32_t id_of_byte[kBytes];
    for (int32_t id = 0; id < kBytes; ++id) {
        known_[vocabulary_.tokens[id]] = id;
        id_of_byte[static_cast<unsigned char>(vocabulary_.tokens[id][0])] = id;
    }
    Found found;
    for (const auto& [text, count] : words) {
        require(text.size() < UINT32_MAX && words_.size() < UINT32_MAX,
                "too many words, or too long ones, to train on");
        const auto word = static_cast<uint32_t>(words_.size());
        words_.push_back({ids_.size(), static_cast<uint32_t>(text.size()), count});
        for (const char byte : text) ids_.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
        for (size_t i = words_.back().begin; i + 1 < ids_.size(); ++i)
            appears(pair_key(ids_[i], ids_[i + 1]), word, count, found);
    }
    enqueue(found);
}

BpeVocabulary Merging::run() {
    while (vocabulary_.tokens.size() < static_cast<size_t>(size_) && !queue_.empty()) {
        Entry top = queue_.top();
        queue_.pop();
        const int64_t count = counts_[top.pair];
        if (count != top.count) {  // merges have taken some of it meanwhile
            top.count = count;
            queue_.push(top);
            continue;
        }
        if (count < 1) break;
        const auto left = static_cast<int32_t>(top.pair >> 32);
        const auto right = static_cast<int32_t>(top.pair);
        const int32_t joined = token_for(left, right);
        vocabulary_.merges.emplace_back(left, right);
        Found found;
        for (const uint32_t word : places_[top.places]) merge_in(word, left, right, joined, found);
        std::vector<uint32_t>().swap(places_[top.places]);
        enqueue(found);
    }
    return std::move(vocabulary_);
}

// Two merges may make the same token: its id is the first one's.
int32_t Merging::token_for(int32_t left, int32_t right) {
    std::string bytes = vocabulary_.tokens[left] + vocabulary_.tokens[right];
    const auto [entry, is_new] =
        known_.try_emplace(bytes, static_cast<int32_t>(vocabulary_.tokens.size()));
    if (is_new) vocabulary_.tokens.push_back(std::move(bytes));
    return entry->second;
}

// From left to right; in a run of one character the first two are merged.
void Merging::merge_in(uint32_t index, int32_t left, int32_t right, int32_t joined, Found& found) {
    Word& word = words_[index];
    int32_t* ids = ids_.data() + word.begin;
    uint32_t out = 0;
    for (uint32_t in = 0; in < word.length; ++in, ++out) {
        if (ids[in] != left || in + 1 == word.length || ids[in + 1] != right) {
            ids[out] = ids[in];
            continue;
        }
        if (out > 0) {
            counts_[pair_key(ids[out - 1], left)] -= word.count;
            appears(pair_key(ids[out - 1], joined), index, word.count, found);
        }
        ++in;
        if (in + 1 < word.length) {
            counts_[pair_key(right, ids[in + 1])] -= word.count;
            appears(pair_key(joined, ids[in + 1]), index, word.count, found);
        }
        ids[out] = joined;
    }
    word.length = out;
}

void Merging::appears(uint64_t pair, uint32_t word, int64_t count, Found& found) {
    counts_[pair] += count;
    std::vector<uint32_t>& places = found[pair];
    if (places.empty() || places.back() != word) places.push_back(word);
}

void Merging::enqueue(Found& found) {
    for (auto& [pair, places] : found) {
        const int64_t count = counts_[pair];
        if (count <= 0) continue;
        queue_.push({count, pair, places_.size()});
        places_.push_back(std::move(places));
    }
}

}  // namespace

void BpeTrainer::add(std::string_view text) {
    std::string copy, word;
    if (!is_valid_utf8(text)) text = copy = replace_invalid(text);
    for (size_t at = 0; at < text.size();) {
        const size_t end = word_end(text, at);
        word.assign(text.substr(at, end - at));
        ++words_[word];
        at = end;
    }
}

BpeVocabulary BpeTrainer::train(int32_t size) const { return Merging(words_, size).run(); }

}  // namespace hark
