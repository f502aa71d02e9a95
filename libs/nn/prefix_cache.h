// Which blocks of a key/value cache hold the keys and values of which beginnings of texts.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace hark {

// A tree of beginnings, one block of tokens per node. A node's tokens are compared, not their hash
// alone. Per group of layers it names the block of the cache, or kNone where that is lost.
class PrefixCache {
  public:
    static constexpr int32_t kNone = -1;
    static constexpr int64_t kRoot = 0;  // the empty beginning

    // `block`: tokens of a block.
    explicit PrefixCache(int64_t block) : block_(block) {}

    // Finds the longest known beginning of `tokens`: its nodes' ids, the shortest first.
    std::vector<int64_t> find(std::span<const int32_t> tokens) const;
    // The block of a group at a node; kNone: none.
    int32_t block(int64_t node, size_t group) const;
    // The node that follows `parent` by one block of tokens, made if there is none. In groups where
    // it has no block it gets that of `blocks`, one per group or kNone. No other node has them.
    int64_t add(int64_t parent, std::span<const int32_t> tokens, std::span<const int32_t> blocks);
    // The contents of a group's block are lost. A node without blocks is removed.
    void lose(size_t group, int32_t block);
    int64_t nodes() const { return std::ssize(nodes_); }

  private:
    struct Node {
        int64_t parent;
        std::vector<int32_t> tokens, blocks;
    };
    int64_t child(int64_t parent, std::span<const int32_t> tokens) const;

    int64_t block_, next_ = kRoot + 1;
    std::unordered_map<int64_t, Node> nodes_;
    std::unordered_multimap<uint64_t, int64_t> children_;      // by hash of parent and tokens
    // Per group that has had a block: block -> node.
    std::vector<std::unordered_map<int32_t, int64_t>> owner_;
};

}  // namespace hark
