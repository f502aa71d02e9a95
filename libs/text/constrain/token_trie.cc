#include "text/constrain/token_trie.h"

#include <algorithm>

#include "text/constrain/automaton.h"

namespace hark {
namespace {

// Nodes with at least this number of nodes below have a set of their symbols.
constexpr int32_t kManyNodes = 8;
static_assert(TokenTrie::SymbolSet().size() == GrammarAutomaton::kMostClasses);

}  // namespace

TokenTrie::TokenTrie(const Tokenizer& tokenizer, std::span<const int32_t> specials) {
    read_tokens(tokenizer, specials);
    const auto less = [&](int32_t a, int32_t b) {
        const auto left = symbols_of(a), right = symbols_of(b);
        return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
    };
    std::stable_sort(ids_.begin(), ids_.end(), less);
    add_nodes();
    add_sets();
}

void TokenTrie::read_tokens(const Tokenizer& tokenizer, std::span<const int32_t> specials) {
    vocab_size_ = tokenizer.vocab_size();
    const std::unique_ptr<Tokenizer::Decoder> decoder = tokenizer.decoder();
    for (int32_t id = 0; id < vocab_size_; ++id) {
        begins_.push_back(static_cast<int32_t>(symbols_.size()));
        if (!tokenizer.has(id)) continue;
        const auto special = std::find(specials.begin(), specials.end(), id);
        if (special != specials.end()) {
            symbols_.push_back(static_cast<uint16_t>(kByteSymbols + (special - specials.begin())));
        } else if (!tokenizer.is_special(id)) {
            const std::string bytes = tokenizer.bytes_of(id);
            for (const char c : bytes) symbols_.push_back(static_cast<unsigned char>(c));
            if (bytes.starts_with(' ') &&
                decoder->push(std::span(&id, 1)) + decoder->finish() != bytes)
                cut_at_beginning_.push_back(id);
        }
        const int64_t length = std::ssize(symbols_) - begins_.back();
        longest_ = std::max(longest_, length);
        if (length > 0) ids_.push_back(id);
    }
    begins_.push_back(static_cast<int32_t>(symbols_.size()));
}

std::span<const uint16_t> TokenTrie::symbols_of(int32_t id) const {
    const auto begin = static_cast<size_t>(begins_[static_cast<size_t>(id)]);
    const auto end = static_cast<size_t>(begins_[static_cast<size_t>(id) + 1]);
    return std::span(symbols_).subspan(begin, end - begin);
}

void TokenTrie::add_nodes() {
    std::vector<size_t> path = {0};  // the open nodes, the root first
    nodes_.push_back({});
    const auto close = [&](size_t depth) {
        for (; path.size() > depth + 1; path.pop_back())
            nodes_[path.back()].end = static_cast<int32_t>(nodes_.size());
    };
    std::span<const uint16_t> previous;
    for (size_t i = 0; i < ids_.size(); ++i) {
        const std::span<const uint16_t> symbols = symbols_of(ids_[i]);
        const auto shared =
            std::mismatch(previous.begin(), previous.end(), symbols.begin(), symbols.end()).second -
            symbols.begin();
        close(static_cast<size_t>(shared));
        for (size_t depth = path.size() - 1; depth < symbols.size(); ++depth) {
            path.push_back(nodes_.size());
            nodes_.push_back(
                {0, static_cast<int32_t>(i), symbols[depth], static_cast<uint16_t>(depth + 1), -1});
        }
        previous = symbols;
    }
    close(0);
    nodes_[0].end = static_cast<int32_t>(nodes_.size());
    nodes_.push_back({0, static_cast<int32_t>(ids_.size()), 0, 0, -1});
}

void TokenTrie::add_sets() {
    for (size_t i = 0; i + 1 < nodes_.size(); ++i) {
        const auto end = static_cast<size_t>(nodes_[i].end);
        if (static_cast<int32_t>(end - i) <= kManyNodes) continue;
        SymbolSet set;
        for (size_t below = i + 1; below < end; ++below) set.set(nodes_[below].symbol);
        nodes_[i].inside = static_cast<int32_t>(sets_.size());
        sets_.push_back(set);
    }
}

}  // namespace hark
