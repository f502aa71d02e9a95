// A context-free grammar over symbols: what JSON schemas, regular expressions and GBNF become.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hark {

// A symbol is a byte, or from 256 on one of a few special tokens (grammar_symbol()).
inline constexpr int32_t kByteSymbols = 256, kMostSpecialSymbols = 16;
// A repeat without an upper bound.
inline constexpr int64_t kUnlimited = -1;

// Builds a grammar of rules. An Expr is an expression of this grammar; one may be used in several
// places.
class Grammar {
  public:
    using Expr = int32_t;
    using Rule = int32_t;

    // An automaton whose edges are expressions. State 0 is the first one.
    struct Graph {
        struct Edge {
            int32_t from = 0, to = 0;
            Expr label = 0;
        };
        std::vector<Edge> edges;
        std::vector<bool> accepts;  // per state
    };

    enum class Kind { range, sequence, choice, repeat, graph, call };
    struct Node {
        Kind kind = Kind::sequence;
        int32_t first = 0, last = 0;  // range: symbols; graph: its place in graphs; call: the rule
        int64_t least = 0, most = 0;  // repeat
        std::vector<Expr> parts;      // sequence, choice, repeat
    };
    // shared: a caller's states do not depend on the rule's, so that masks of its inside are kept
    // once. expanded: a rule that is not recursive may be copied into its callers.
    enum class Calls { shared, expanded };

    Expr nothing() { return choice({}); }  // no text
    Expr empty() { return sequence({}); }  // the text without symbols
    Expr range(int32_t first, int32_t last);
    Expr text(std::string_view bytes);
    Expr special(int32_t index) { return range(kByteSymbols + index, kByteSymbols + index); }
    Expr sequence(std::vector<Expr> parts);
    Expr choice(std::vector<Expr> parts);
    // most: kUnlimited for no bound.
    Expr repeat(Expr part, int64_t least, int64_t most);
    Expr optional(Expr part) { return repeat(part, 0, 1); }
    Expr graph(Graph graph);
    Expr call(Rule rule);

    // A rule without a definition yet; messages have its name.
    Rule add_rule(std::string name, Calls calls = Calls::shared);
    void define(Rule rule, Expr expr) { rules_[static_cast<size_t>(rule)].expr = expr; }
    // The rule that a whole text is.
    void set_root(Rule rule) { root_ = rule; }

    struct RuleInfo {
        std::string name;
        Calls calls = Calls::shared;
        Expr expr = -1;
    };
    const std::vector<RuleInfo>& rules() const { return rules_; }
    const Node& node(Expr expr) const { return nodes_[static_cast<size_t>(expr)]; }
    const Graph& graph_of(const Node& node) const {
        return graphs_[static_cast<size_t>(node.first)];
    }
    Rule root() const { return root_; }

  private:
    Expr add(Node node);

    std::vector<Node> nodes_;
    std::vector<Graph> graphs_;
    std::vector<RuleInfo> rules_;
    Rule root_ = -1;
};

}  // namespace hark
