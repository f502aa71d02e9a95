// Regular languages of code points: expressions, and the automata that they become.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/constrain/char_set.h"

namespace hark {

// An expression; copies share their parts.
class Regular {
  public:
    enum class Kind { chars, sequence, choice, repeat, begin, end };

    static Regular chars(CharSet set) { return make(Kind::chars, {}, std::move(set)); }
    static Regular text(std::u32string_view text);
    static Regular sequence(std::vector<Regular> parts) {
        return make(Kind::sequence, std::move(parts));
    }
    static Regular choice(std::vector<Regular> parts) {
        return make(Kind::choice, std::move(parts));
    }
    static Regular empty() { return sequence({}); }
    static Regular nothing() { return choice({}); }
    // most: kUnlimited for no bound.
    static Regular repeat(Regular part, int64_t least, int64_t most);
    static Regular optional(Regular part) { return repeat(std::move(part), 0, 1); }
    static Regular begin() { return make(Kind::begin, {}); }  // ^
    static Regular end() { return make(Kind::end, {}); }      // $
    // Texts with a part that fits.
    static Regular containing(Regular part);

    Kind kind() const { return node_->kind; }
    const std::vector<Regular>& parts() const { return node_->parts; }
    const CharSet& set() const { return node_->set; }
    int64_t least() const { return node_->least; }
    int64_t most() const { return node_->most; }

  private:
    struct Node {
        Kind kind;
        std::vector<Regular> parts;
        CharSet set;
        int64_t least = 0, most = 0;
    };
    explicit Regular(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
    static Regular make(Kind kind, std::vector<Regular> parts, CharSet set = {}, int64_t least = 0,
                        int64_t most = 0);

    std::shared_ptr<const Node> node_;
};

// Whole texts. State 0 is the first one. All functions throw Error if there are too many states.
struct CharAutomaton {
    struct Edge {
        CharSet set;
        int32_t to = 0;
    };
    std::vector<std::vector<Edge>> edges;  // per state
    std::vector<bool> accepts;

    explicit CharAutomaton(const Regular& regular);
    CharAutomaton() = default;

    bool matches(std::u32string_view text) const;
    bool empty() const;  // no text is accepted
};

CharAutomaton intersection(const CharAutomaton& a, const CharAutomaton& b);
// One edge per state and character, and no edge that leads nowhere.
CharAutomaton determinized(const CharAutomaton& automaton);
// All other texts.
CharAutomaton complement(const CharAutomaton& automaton);

// The texts of the automaton, each character as `spell` writes a set of them.
using SpellChar = std::function<Grammar::Expr(Grammar&, const CharSet&)>;
Grammar::Expr spelled(Grammar& grammar, const CharAutomaton& automaton, const SpellChar& spell);

}  // namespace hark
