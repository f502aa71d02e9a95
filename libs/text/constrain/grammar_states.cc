#include "text/constrain/grammar_states.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace hark {
namespace {

using Kind = GrammarAutomaton::Position::Kind;

constexpr int32_t kNotComputed = -1, kNone = -2;
constexpr int32_t kBottomFrame = -1;  // in a stack: the text's end
constexpr size_t kMostStateBytes = size_t{1} << 30;

uint64_t pair_of(int32_t a, int32_t b) {
    return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
}

}  // namespace

size_t ListTable::Hash::operator()(const std::vector<int32_t>& list) const {
    uint64_t hash = list.size();
    for (const int32_t value : list) {
        hash = (hash ^ static_cast<uint32_t>(value)) * 0x9E3779B97F4A7C15;
        hash ^= hash >> 29;
    }
    return hash;
}

int32_t ListTable::id_of(const std::vector<int32_t>& list) {
    const auto [place, is_new] = ids_.try_emplace(list, static_cast<int32_t>(lists_.size()));
    if (is_new) {
        lists_.push_back(&place->first);
        bytes_ += 64 + list.size() * sizeof(int32_t);
    }
    return place->second;
}

GrammarStates::GrammarStates(const GrammarAutomaton& automaton)
    : automaton_(automaton),
      begins_(automaton.rules(), kNotComputed),
      seen_(automaton.positions()) {
    Closure none;
    state_of(none);  // kDead
    stack_of({kBottomFrame, 0}, 0);
    Closure closure;
    enter(closure, {begin_of(automaton.root()), kBottom});
    start_ = state_of(closure);
}

// Interns what can be reached from the positions without a symbol, within the rule.
int32_t GrammarStates::local_of(std::vector<int32_t> seeds) {
    ++round_;
    std::vector<int32_t> open = std::move(seeds), found;
    while (!open.empty()) {
        const int32_t p = open.back();
        open.pop_back();
        if (p < 0 || !automaton_.is_live(p)) continue;
        if (std::exchange(seen_[static_cast<size_t>(p)], round_) == round_) continue;
        const GrammarAutomaton::Position& position = automaton_.at(p);
        if (position.kind == Kind::split)
            open.push_back(position.next), open.push_back(position.other);
        else
            found.push_back(p);
    }
    std::sort(found.begin(), found.end());
    const int32_t id = locals_.id_of(found);
    if (static_cast<size_t>(id) < local_info_.size()) return id;
    std::vector<std::pair<int32_t, int32_t>> calls;  // a rule, where it returns to
    Local local;
    for (const int32_t p : found) {
        const GrammarAutomaton::Position& position = automaton_.at(p);
        if (position.kind == Kind::accept) local.accepts = true;
        if (position.kind == Kind::range) local.has_symbols = true;
        if (position.kind == Kind::call) calls.emplace_back(position.other, position.next);
    }
    std::sort(calls.begin(), calls.end());
    for (size_t i = 0; i < calls.size();) {
        Call call{calls[i].first, {}};
        for (; i < calls.size() && calls[i].first == call.rule; ++i)
            call.next.push_back(calls[i].second);
        local.calls.push_back(std::move(call));
    }
    local.next.assign(local.has_symbols ? static_cast<size_t>(automaton_.classes()) : 0,
                      kNotComputed);
    local_info_.push_back(std::move(local));
    return id;
}

int32_t GrammarStates::begin_of(int32_t rule) {
    int32_t& known = begins_[static_cast<size_t>(rule)];
    if (known == kNotComputed) known = local_of({automaton_.entry(rule)});
    return known;
}

int32_t GrammarStates::local_next(int32_t local, int32_t symbol) {
    const auto symbol_class = static_cast<size_t>(automaton_.class_of(symbol));
    int32_t known = local_info_[static_cast<size_t>(local)].next[symbol_class];
    if (known != kNotComputed) return known;
    std::vector<int32_t> seeds;
    for (const int32_t p : locals_.list(local)) {
        const GrammarAutomaton::Position& position = automaton_.at(p);
        if (position.kind == Kind::range && position.first <= symbol && symbol <= position.last &&
            automaton_.is_live(position.next))
            seeds.push_back(position.next);
    }
    known = seeds.empty() ? kNone : local_of(std::move(seeds));
    local_info_[static_cast<size_t>(local)].next[symbol_class] = known;
    return known;
}

// Adds a head, and those that it reaches by returns and calls.
void GrammarStates::enter(Closure& closure, Head first) {
    std::vector<Head> open = {first};
    while (!open.empty()) {
        const Head head = open.back();
        open.pop_back();
        const auto same = [&](const Head& other) {
            return other.local == head.local && other.stack == head.stack;
        };
        if (std::any_of(closure.seen.begin(), closure.seen.end(), same)) continue;
        closure.seen.push_back(head);
        Local& local = local_info_[static_cast<size_t>(head.local)];
        if (local.has_symbols) closure.heads.push_back(head);
        if (local.accepts) {
            const std::vector<int32_t>& frames = stacks_.list(head.stack);
            for (size_t i = 0; i < frames.size(); i += 2) {
                if (frames[i] == kBottomFrame)
                    closure.can_end = true;
                else
                    open.push_back({frames[i], frames[i + 1]});
            }
        }
        for (Call& call : local.calls) {
            if (call.returns < 0) call.returns = local_of(call.next);
            const int32_t stack = pushed(call.returns, head.stack);
            if (stack != kNone) open.push_back({begin_of(call.rule), stack});
        }
    }
}

// A call that is the last part of its rule returns to the caller's caller.
int32_t GrammarStates::pushed(int32_t returns, int32_t stack) {
    const Local& local = local_info_[static_cast<size_t>(returns)];
    if (local.accepts && !local.has_symbols && local.calls.empty()) return stack;
    const int32_t depth = depths_[static_cast<size_t>(stack)] + 1;
    if (depth > kMostOpenCalls) return kNone;
    return stack_of({returns, stack}, depth);
}

int32_t GrammarStates::stack_of(const std::vector<int32_t>& frames, int32_t depth) {
    const int32_t id = stacks_.id_of(frames);
    if (static_cast<size_t>(id) == depths_.size()) depths_.push_back(depth);
    return id;
}

// The frames of both stacks; those of one local state have their stacks merged.
int32_t GrammarStates::merged(int32_t a, int32_t b) {
    if (a == b) return a;
    if (a > b) std::swap(a, b);
    const auto known = merges_.find(pair_of(a, b));
    if (known != merges_.end()) return known->second;
    const std::vector<int32_t>&left = stacks_.list(a), &right = stacks_.list(b);
    std::vector<int32_t> frames;
    int32_t depth = 0;
    for (size_t i = 0, j = 0; i < left.size() || j < right.size();) {
        const bool takes_left = j >= right.size() || (i < left.size() && left[i] <= right[j]);
        const bool takes_right = i >= left.size() || (j < right.size() && right[j] <= left[i]);
        const int32_t local = takes_left ? left[i] : right[j];
        const int32_t stack = takes_left && takes_right ? merged(left[i + 1], right[j + 1])
                              : takes_left              ? left[i + 1]
                                                        : right[j + 1];
        frames.insert(frames.end(), {local, stack});
        if (local != kBottomFrame) depth = std::max(depth, depths_[static_cast<size_t>(stack)] + 1);
        i += takes_left ? 2 : 0;
        j += takes_right ? 2 : 0;
    }
    const int32_t id = stack_of(frames, depth);
    merges_.emplace(pair_of(a, b), id);
    return id;
}

// Interns the state; heads of one local state become one.
GrammarStates::State GrammarStates::state_of(Closure& closure) {
    std::vector<Head>& heads = closure.heads;
    std::sort(heads.begin(), heads.end(), [](const Head& a, const Head& b) {
        return std::pair(a.local, a.stack) < std::pair(b.local, b.stack);
    });
    std::vector<int32_t> key = {closure.can_end ? 1 : 0};
    for (const Head& head : heads) {
        if (key.size() > 1 && key[key.size() - 2] == head.local)
            key.back() = merged(key.back(), head.stack);
        else
            key.insert(key.end(), {head.local, head.stack});
    }
    const State state = states_.id_of(key);
    if (static_cast<size_t>(state) < info_.size()) return state;
    Info info;
    info.can_end = closure.can_end;
    for (size_t i = 1; i < key.size(); i += 2) info.heads.push_back({key[i], key[i + 1]});
    // Without heads every symbol is refused.
    info.next.assign(static_cast<size_t>(automaton_.classes()),
                     info.heads.empty() ? kDead : kNotComputed);
    info_.push_back(std::move(info));
    check_memory();
    return state;
}

GrammarStates::State GrammarStates::find_next(State state, int32_t symbol) {
    Closure closure;
    for (size_t i = 0; i < heads(state).size(); ++i) {
        const Head head = heads(state)[i];
        const int32_t next = local_next(head.local, symbol);
        if (next != kNone) enter(closure, {next, head.stack});
    }
    const State found = state_of(closure);
    info_[static_cast<size_t>(state)].next[static_cast<size_t>(automaton_.class_of(symbol))] =
        found;
    return found;
}

GrammarStates::State GrammarStates::local_start(int32_t local, int64_t lookahead) {
    std::vector<int32_t> positions = locals_.list(local);
    for (int32_t& position : positions) position = automaton_.canonical(position, lookahead);
    Closure closure;
    closure.heads.push_back({local_of(std::move(positions)), kBottom});
    return state_of(closure);
}

GrammarStates::State GrammarStates::after_return(int32_t stack) {
    const auto known = returns_.find(stack);
    if (known != returns_.end()) return known->second;
    Closure closure;
    const std::vector<int32_t> frames = stacks_.list(stack);
    for (size_t i = 0; i < frames.size(); i += 2) {
        if (frames[i] == kBottomFrame)
            closure.can_end = true;
        else
            enter(closure, {frames[i], frames[i + 1]});
    }
    const State state = state_of(closure);
    returns_.emplace(stack, state);
    return state;
}

void GrammarStates::check_memory() const {
    const size_t classes = static_cast<size_t>(automaton_.classes()) * sizeof(int32_t);
    const size_t bytes = locals_.bytes() + stacks_.bytes() + states_.bytes() +
                         (local_info_.size() + info_.size()) * (classes + 96) +
                         merges_.size() * 48 + returns_.size() * 32;
    require(bytes <= kMostStateBytes, "the constraint is too ambiguous: its states take more than ",
            kMostStateBytes >> 20, " MiB");
}

}  // namespace hark
