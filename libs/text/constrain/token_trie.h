// A tokenizer's tokens in the order of their bytes, as a trie.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace hark {

class TokenTrie {
  public:
    // A node is a beginning of tokens. Those of the nodes below node i are the nodes i + 1 to
    // nodes[i].end.
    struct Node {
        int32_t end = 0;
        int32_t tokens = 0;  // where its own tokens begin in ids()
        uint16_t symbol = 0, depth = 0;
        int32_t inside = -1;  // the place of the set of symbols below it, if it has many nodes
    };
    using SymbolSet = std::bitset<272>;  // GrammarAutomaton::kMostClasses

    // `specials[i]`, a special token or -1, is the symbol 256 + i. Other special tokens, and tokens
    // without bytes, are left out.
    explicit TokenTrie(const Tokenizer& tokenizer, std::span<const int32_t> specials = {});

    // Node 0 is the root. A further one at the end ends the last one's tokens.
    const std::vector<Node>& nodes() const { return nodes_; }
    // In the order of the nodes.
    const std::vector<int32_t>& ids() const { return ids_; }
    // The symbols below a node.
    const SymbolSet& inside(const Node& node) const {
        return sets_[static_cast<size_t>(node.inside)];
    }
    // A token's symbols; none for one that is left out.
    std::span<const uint16_t> symbols_of(int32_t id) const;
    int32_t vocab_size() const { return vocab_size_; }
    int64_t longest() const { return longest_; }
    // Tokens whose text at a text's beginning lacks a space that they have elsewhere.
    const std::vector<int32_t>& cut_at_beginning() const { return cut_at_beginning_; }

  private:
    void read_tokens(const Tokenizer& tokenizer, std::span<const int32_t> specials);
    void add_nodes();
    void add_sets();

    int32_t vocab_size_ = 0;
    int64_t longest_ = 0;
    std::vector<uint16_t> symbols_;  // of all tokens
    std::vector<int32_t> begins_;    // per id, and the end
    std::vector<int32_t> ids_, cut_at_beginning_;
    std::vector<Node> nodes_;
    std::vector<SymbolSet> sets_;
};

}  // namespace hark
