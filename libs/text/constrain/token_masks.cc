#include "text/constrain/token_masks.h"

#include <algorithm>

#include "core/error.h"

namespace hark {
namespace {

// Masks that are kept, at most; then all are dropped.
constexpr size_t kMostMaskBytes = size_t{128} << 20;

void allow(TokenMask& mask, int32_t token) {
    const auto at = static_cast<size_t>(token);
    mask[at / 64] |= uint64_t{1} << (at % 64);
}

}  // namespace

TokenMasks::TokenMasks(const Grammar& grammar, std::shared_ptr<const TokenTrie> trie,
                       std::vector<int32_t> ends)
    : trie_(std::move(trie)), automaton_(grammar), states_(automaton_), ends_(std::move(ends)) {
    std::erase_if(ends_, [&](int32_t id) { return id < 0 || id >= trie_->vocab_size(); });
    path_.resize(static_cast<size_t>(trie_->longest()) + 1);
}

TokenMasks::State TokenMasks::start() { return states_.start(); }

TokenMasks::State TokenMasks::next(State state, int32_t token) {
    const std::lock_guard lock(mutex_);
    if (std::find(ends_.begin(), ends_.end(), token) != ends_.end())
        return states_.can_end(state) ? state : GrammarStates::kDead;
    const std::span<const uint16_t> symbols = trie_->symbols_of(token);
    if (symbols.empty()) return GrammarStates::kDead;
    for (const uint16_t symbol : symbols) state = states_.next(state, symbol);
    return state;
}

bool TokenMasks::can_end(State state) {
    const std::lock_guard lock(mutex_);
    return states_.can_end(state);
}

bool TokenMasks::is_final(State state) {
    const std::lock_guard lock(mutex_);
    return states_.is_final(state);
}

std::shared_ptr<const TokenMask> TokenMasks::mask(State state, bool begins) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const TokenMask> known = known_mask(state);
    if (!begins || trie_->cut_at_beginning().empty()) return known;
    TokenMask first = *known;
    for (const int32_t id : trie_->cut_at_beginning()) {
        const auto at = static_cast<size_t>(id);
        first[at / 64] &= ~(uint64_t{1} << (at % 64));
    }
    return std::make_shared<const TokenMask>(std::move(first));
}

std::shared_ptr<const TokenMask> TokenMasks::known_mask(State state) {
    const auto known = masks_.find(state);
    if (known != masks_.end()) return known->second;
    auto mask = std::make_shared<TokenMask>((static_cast<size_t>(trie_->vocab_size()) + 63) / 64);
    for (size_t i = 0; i < states_.heads(state).size(); ++i) {
        const GrammarStates::Head head = states_.heads(state)[i];
        const LocalMask& local = local_mask(head.local);
        for (size_t word = 0; word < mask->size(); ++word) (*mask)[word] |= local.tokens[word];
        if (head.stack == GrammarStates::kBottom) continue;
        const State returned = states_.after_return(head.stack);
        if (states_.heads(returned).empty()) continue;
        for (const int32_t node : local.returns) walk(node, returned, *mask, nullptr);
    }
    if (states_.can_end(state))
        for (const int32_t id : ends_) allow(*mask, id);
    if ((masks_.size() + 1) * mask->size() * sizeof(uint64_t) > kMostMaskBytes) masks_.clear();
    masks_.emplace(state, mask);
    return mask;
}

const TokenMasks::LocalMask& TokenMasks::local_mask(int32_t local) {
    const State start = states_.local_start(local, trie_->longest());
    const auto known = local_masks_.find(start);
    if (known != local_masks_.end()) return known->second;
    LocalMask mask;
    mask.tokens.resize((static_cast<size_t>(trie_->vocab_size()) + 63) / 64);
    walk(0, start, mask.tokens, &mask.returns);
    if ((local_masks_.size() + 1) * mask.tokens.size() * sizeof(uint64_t) > kMostMaskBytes)
        local_masks_.clear();
    return local_masks_.emplace(start, std::move(mask)).first->second;
}

void TokenMasks::walk(int32_t node, State state, TokenMask& tokens, std::vector<int32_t>* returns) {
    const std::vector<TokenTrie::Node>& nodes = trie_->nodes();
    const int32_t end = nodes[static_cast<size_t>(node)].end;
    path_[nodes[static_cast<size_t>(node)].depth] = state;
    for (int32_t i = node + 1; i < end;) {
        const TokenTrie::Node& at = nodes[static_cast<size_t>(i)];
        const State before = path_[at.depth - 1u];
        const State after = states_.next(before, at.symbol);
        if (after == GrammarStates::kDead) {
            i = at.end;
            continue;
        }
        const bool can_end = states_.can_end(after);
        // A state that every symbol below leads back to accepts all tokens below.
        if (after == before && at.inside >= 0 && !(returns && can_end)) {
            const TokenTrie::SymbolSet& inside = trie_->inside(at);
            if ((inside & loop_of(after)) == inside) {
                allow_nodes(i, at.end, tokens);
                i = at.end;
                continue;
            }
        }
        path_[at.depth] = after;
        allow_nodes(i, i + 1, tokens);
        if (returns && can_end && at.end > i + 1) returns->push_back(i);
        ++i;
    }
}

void TokenMasks::allow_nodes(int32_t begin, int32_t end, TokenMask& tokens) const {
    const std::vector<TokenTrie::Node>& nodes = trie_->nodes();
    const int32_t last = nodes[static_cast<size_t>(end)].tokens;
    for (int32_t i = nodes[static_cast<size_t>(begin)].tokens; i < last; ++i)
        allow(tokens, trie_->ids()[static_cast<size_t>(i)]);
}

const TokenTrie::SymbolSet& TokenMasks::loop_of(State state) {
    const auto known = loops_.find(state);
    if (known != loops_.end()) return known->second;
    TokenTrie::SymbolSet loop;
    for (size_t symbol = 0; symbol < loop.size(); ++symbol)
        loop[symbol] = states_.next(state, static_cast<int32_t>(symbol)) == state;
    return loops_.emplace(state, loop).first->second;
}

}  // namespace hark
