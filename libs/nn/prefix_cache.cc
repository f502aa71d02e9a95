#include "nn/prefix_cache.h"

#include <algorithm>

#include "core/random.h"

namespace hark {
namespace {

uint64_t hash_of(int64_t parent, std::span<const int32_t> tokens) {
    auto hash = static_cast<uint64_t>(parent);
    for (const int32_t token : tokens) hash = split_mix(hash, static_cast<uint64_t>(token));
    return hash;
}

}  // namespace

int64_t PrefixCache::child(int64_t parent, std::span<const int32_t> tokens) const {
    const auto [begin, end] = children_.equal_range(hash_of(parent, tokens));
    for (auto found = begin; found != end; ++found) {
        const Node& node = nodes_.at(found->second);
        if (node.parent == parent && std::equal(tokens.begin(), tokens.end(), node.tokens.begin()))
            return found->second;
    }
    return kRoot;
}

std::vector<int64_t> PrefixCache::find(std::span<const int32_t> tokens) const {
    std::vector<int64_t> found;
    const auto size = static_cast<size_t>(block_);
    for (int64_t at = kRoot; tokens.size() >= size; tokens = tokens.subspan(size)) {
        at = child(at, tokens.first(size));
        if (at == kRoot) break;
        found.push_back(at);
    }
    return found;
}

int32_t PrefixCache::block(int64_t node, size_t group) const {
    const auto found = nodes_.find(node);
    return found == nodes_.end() ? kNone : found->second.blocks[group];
}

int64_t PrefixCache::add(int64_t parent, std::span<const int32_t> tokens,
                         std::span<const int32_t> blocks) {
    int64_t id = child(parent, tokens);
    if (id == kRoot) {
        id = next_++;
        nodes_[id] = {
            parent, {tokens.begin(), tokens.end()}, std::vector<int32_t>(blocks.size(), kNone)};
        children_.emplace(hash_of(parent, tokens), id);
    }
    Node& node = nodes_.at(id);
    owner_.resize(std::max(owner_.size(), blocks.size()));
    for (size_t group = 0; group < blocks.size(); ++group) {
        if (blocks[group] == kNone || node.blocks[group] != kNone) continue;
        node.blocks[group] = blocks[group];
        owner_[group][blocks[group]] = id;
    }
    return id;
}

void PrefixCache::lose(size_t group, int32_t block) {
    if (group >= owner_.size()) return;
    const auto owner = owner_[group].find(block);
    if (owner == owner_[group].end()) return;
    const int64_t id = owner->second;
    owner_[group].erase(owner);
    Node& node = nodes_.at(id);
    node.blocks[group] = kNone;
    const auto is_lost = [](int32_t other) { return other == kNone; };
    if (!std::all_of(node.blocks.begin(), node.blocks.end(), is_lost)) return;
    const auto [begin, end] = children_.equal_range(hash_of(node.parent, node.tokens));
    children_.erase(
        std::find_if(begin, end, [&](const auto& entry) { return entry.second == id; }));
    nodes_.erase(id);
}

}  // namespace hark
