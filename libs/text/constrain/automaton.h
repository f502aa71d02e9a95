// A grammar as an automaton of positions: an NFA for each rule, whose edges are symbols and calls.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "text/constrain/grammar.h"
#include "text/constrain/rule_calls.h"

namespace hark {

class GrammarAutomaton {
  public:
    struct Position {
        enum class Kind : uint8_t { accept, range, call, split } kind = Kind::split;
        uint16_t first = 0, last = 0;   // range: symbols
        int32_t next = -1, other = -1;  // -1: none. call: `other` is the rule
    };
    // The end of every rule.
    static constexpr int32_t kAccept = 0;
    static constexpr size_t kMostClasses = kByteSymbols + kMostSpecialSymbols;

    // Throws Error if no text fits the grammar, if a rule calls itself before any symbol (left
    // recursion; names the rule), and if it is too large.
    explicit GrammarAutomaton(const Grammar& grammar);

    const Position& at(int32_t position) const { return positions_[static_cast<size_t>(position)]; }
    size_t rules() const { return entries_.size(); }
    // Where the rule begins; -1 for a rule that no position calls.
    int32_t entry(int32_t rule) const { return entries_[static_cast<size_t>(rule)]; }
    int32_t root() const { return root_; }
    size_t positions() const { return positions_.size(); }
    // Whether an accept can be reached.
    bool is_live(int32_t position) const { return live_[static_cast<size_t>(position)]; }
    // Symbols of one class are on the same edges.
    int32_t classes() const { return static_cast<int32_t>(class_symbol_.size()); }
    int32_t class_of(int32_t symbol) const { return class_of_[static_cast<size_t>(symbol)]; }
    int32_t symbol_of(int32_t symbol_class) const {
        return class_symbol_[static_cast<size_t>(symbol_class)];
    }
    // A position that accepts the same next `lookahead` symbols: that of another copy of a counted
    // repetition.
    int32_t canonical(int32_t position, int64_t lookahead) const;

  private:
    // Copies of a repetition's part: of the same size, the last copy first.
    struct Block {
        int32_t base = 0, size = 0;
        int64_t copies = 0, least = 0;
        bool unlimited = false;
        int32_t parent = -1;
    };

    int32_t add(Position position);
    int32_t compile(Grammar::Expr expr, int32_t next);
    int32_t compile_choice(const Grammar::Node& node, int32_t next);
    int32_t compile_repeat(const Grammar::Node& node, int32_t next);
    int32_t compile_graph(const Grammar::Node& node, int32_t next);
    void add_epsilon(int32_t from, int32_t to);
    bool consumes(Grammar::Expr expr) const;
    void find_live();
    void find_classes();

    const Grammar* grammar_;  // while it is compiled
    RuleCalls calls_;
    std::vector<Position> positions_;
    std::vector<int32_t> entries_, block_of_;
    std::vector<Block> blocks_;
    int32_t block_ = -1;  // that is compiled
    std::vector<bool> live_;
    std::array<uint16_t, kMostClasses> class_of_{};
    std::vector<int32_t> class_symbol_;
    int32_t root_ = 0;
};

}  // namespace hark
