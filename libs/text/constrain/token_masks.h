// Which tokens may come next under a grammar: a bit per token, kept by state.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "text/constrain/grammar_states.h"
#include "text/constrain/token_trie.h"

namespace hark {

// Bit t % 64 of word t / 64 is token t's.
using TokenMask = std::vector<uint64_t>;

inline bool allows(const TokenMask& mask, int32_t token) {
    const auto at = static_cast<size_t>(token);
    return at / 64 < mask.size() && (mask[at / 64] >> (at % 64) & 1) != 0;
}

// May be used by several threads.
class TokenMasks {
  public:
    using State = GrammarStates::State;

    // `ends` are the tokens that end a text: allowed where the grammar can end. Throws Error as
    // GrammarAutomaton does.
    TokenMasks(const Grammar& grammar, std::shared_ptr<const TokenTrie> trie,
               std::vector<int32_t> ends);

    State start();
    // The state after a token; kDead if it is not allowed. An end leaves the state as it is.
    State next(State state, int32_t token);
    bool can_end(State state);
    // Whether the text can only end.
    bool is_final(State state);
    // The allowed tokens. The mask is kept while the state is in use; a new state's takes a walk
    // through what is not known of it. `begins`: of a text's first token, whose leading space a
    // decoder may take off.
    std::shared_ptr<const TokenMask> mask(State state, bool begins);
    // Makes the state's mask on a thread of its own, so that it is there when it is asked for.
    void prepare(State state);

  private:
    // Of a local state whose caller is not known: the tokens that it accepts without a return, and
    // the nodes of the trie at which it has returned, with nodes below.
    struct LocalMask {
        TokenMask tokens;
        std::vector<int32_t> returns;
    };

    std::shared_ptr<const TokenMask> known_mask(State state);
    const LocalMask& local_mask(int32_t local);
    // Adds the tokens below the node that `state`, the node's own, accepts.
    void walk(int32_t node, State state, TokenMask& tokens, std::vector<int32_t>* returns);
    void allow_nodes(int32_t begin, int32_t end, TokenMask& tokens) const;
    const TokenTrie::SymbolSet& loop_of(State state);
    void prepare_masks(std::stop_token stop);

    std::mutex mutex_;
    std::shared_ptr<const TokenTrie> trie_;
    GrammarAutomaton automaton_;
    GrammarStates states_;
    std::vector<int32_t> ends_;
    std::unordered_map<State, std::shared_ptr<const TokenMask>> masks_;
    std::unordered_map<State, LocalMask> local_masks_;  // by local_start()
    std::unordered_map<State, TokenTrie::SymbolSet> loops_;
    std::vector<State> path_;  // of a walk: by depth

    std::mutex wanted_mutex_;
    std::condition_variable_any wanted_changed_;
    std::vector<State> wanted_;  // masks that the thread makes
    std::jthread worker_;        // from the first prepare() on; ends before the rest
};

}  // namespace hark
