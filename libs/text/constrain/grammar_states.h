// The states of a text under a grammar: a determinized pushdown automaton, made as it is needed.
//
// A local state is a set of positions of one rule. A stack is a set of frames, each the local state
// in which a caller continues and the caller's own stack; frames of one local state are merged, so
// an ambiguous text has few of them. A state is a set of heads: a local state and its stack. All
// are interned: a state is a number, and its successors are looked up.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "text/constrain/automaton.h"

namespace hark {

// Interns lists of numbers: equal ones have the same id, from 0.
class ListTable {
  public:
    int32_t id_of(const std::vector<int32_t>& list);
    const std::vector<int32_t>& list(int32_t id) const { return *lists_[static_cast<size_t>(id)]; }
    size_t size() const { return lists_.size(); }
    size_t bytes() const { return bytes_; }

  private:
    struct Hash {
        size_t operator()(const std::vector<int32_t>& list) const;
    };
    std::unordered_map<std::vector<int32_t>, int32_t, Hash> ids_;
    std::vector<const std::vector<int32_t>*> lists_;
    size_t bytes_ = 0;
};

// For one thread at a time.
class GrammarStates {
  public:
    using State = int32_t;
    static constexpr State kDead = 0;
    // Calls that are open in a text; a deeper one is not begun.
    static constexpr int32_t kMostOpenCalls = 512;

    // Keeps the reference.
    explicit GrammarStates(const GrammarAutomaton& automaton);

    State start() const { return start_; }
    // kDead if no text of the grammar continues with the symbol. Throws Error if the states take
    // more than 1 GiB.
    State next(State state, int32_t symbol) {
        const int32_t known = info_[static_cast<size_t>(state)]
                                  .next[static_cast<size_t>(automaton_.class_of(symbol))];
        return known >= 0 ? known : find_next(state, symbol);
    }
    bool can_end(State state) const { return info_[static_cast<size_t>(state)].can_end; }
    // Whether the text can only end.
    bool is_final(State state) const { return can_end(state) && heads(state).empty(); }

    // For masks. A head's local state, and its stack.
    struct Head {
        int32_t local = 0, stack = 0;
    };
    const std::vector<Head>& heads(State state) const {
        return info_[static_cast<size_t>(state)].heads;
    }
    // The state of a local state alone, whose caller is not known: it can end where it returns.
    // Equal for local states that accept the same next `lookahead` symbols in the same way.
    State local_start(int32_t local, int64_t lookahead);
    // The state after a return to the stack.
    State after_return(int32_t stack);
    // A stack without frames.
    static constexpr int32_t kBottom = 0;

  private:
    struct Call {
        int32_t rule = 0;
        std::vector<int32_t> next;  // positions after it
        int32_t returns = -1;       // the local state of these, once it is needed
    };
    struct Local {
        std::vector<Call> calls;
        bool accepts = false, has_symbols = false;
        std::vector<int32_t> next;  // per class; kNotComputed, or kNone
    };
    struct Info {
        std::vector<Head> heads;
        bool can_end = false;
        std::vector<State> next;  // per class; kNotComputed
    };
    // What is collected of a state that is made.
    struct Closure {
        std::vector<Head> heads, seen;
        bool can_end = false;
    };

    State find_next(State state, int32_t symbol);
    int32_t local_of(std::vector<int32_t> seeds);
    int32_t begin_of(int32_t rule);
    int32_t local_next(int32_t local, int32_t symbol);
    void enter(Closure& closure, Head first);
    int32_t pushed(int32_t returns, int32_t stack);
    int32_t merged(int32_t a, int32_t b);
    int32_t stack_of(const std::vector<int32_t>& frames, int32_t depth);
    State state_of(Closure& closure);
    void check_memory() const;

    const GrammarAutomaton& automaton_;
    ListTable locals_, stacks_, states_;  // stacks: pairs of a local state and a stack
    std::deque<Local> local_info_;
    std::vector<int32_t> depths_;  // of stacks
    std::deque<Info> info_;
    std::vector<int32_t> begins_;  // per rule; kNotComputed
    std::unordered_map<uint64_t, int32_t> merges_;
    std::unordered_map<int32_t, State> returns_;
    std::vector<uint32_t> seen_;  // per position: the round that has reached it
    uint32_t round_ = 0;
    State start_ = kDead;
};

}  // namespace hark
