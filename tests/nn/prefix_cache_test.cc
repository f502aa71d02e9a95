// Beginnings of texts, and blocks that several sequences refer to.
#include "nn/prefix_cache.h"

#include <gtest/gtest.h>

#include "nn/block_pool.h"

namespace hark {
namespace {

constexpr int32_t kNone = PrefixCache::kNone;

TEST(PrefixCache, FindsTheLongestBeginning) {
    PrefixCache index(2);
    const int64_t a = index.add(PrefixCache::kRoot, std::vector{1, 2}, std::vector{7});
    const int64_t b = index.add(a, std::vector{3, 4}, std::vector{8});
    index.add(PrefixCache::kRoot, std::vector{3, 4}, std::vector{9});
    EXPECT_EQ(index.find(std::vector{1, 2, 3, 4, 5, 6}), (std::vector{a, b}));
    EXPECT_EQ(index.find(std::vector{1, 2, 3}), std::vector{a});
    EXPECT_EQ(index.find(std::vector{2, 1, 3, 4}), std::vector<int64_t>{});
    EXPECT_EQ(index.find(std::vector<int32_t>{}), std::vector<int64_t>{});
    EXPECT_EQ(index.block(b, 0), 8);
}

TEST(PrefixCache, KeepsTheFirstBlockOfANode) {
    PrefixCache index(2);
    const int64_t a = index.add(PrefixCache::kRoot, std::vector{1, 2}, std::vector{7, kNone});
    EXPECT_EQ(index.add(PrefixCache::kRoot, std::vector{1, 2}, std::vector{5, 6}), a);
    EXPECT_EQ(index.block(a, 0), 7);
    EXPECT_EQ(index.block(a, 1), 6);
}

TEST(PrefixCache, RemovesNodesWithoutBlocks) {
    PrefixCache index(2);
    const int64_t a = index.add(PrefixCache::kRoot, std::vector{1, 2}, std::vector{7, 7});
    const int64_t b = index.add(a, std::vector{3, 4}, std::vector{8, 8});
    index.lose(0, 7);
    EXPECT_EQ(index.block(a, 0), kNone);
    EXPECT_EQ(index.block(a, 1), 7);
    index.lose(1, 5);  // no node's
    index.lose(1, 7);
    EXPECT_EQ(index.nodes(), 1);
    EXPECT_EQ(index.find(std::vector{1, 2, 3, 4}), std::vector<int64_t>{});
    EXPECT_EQ(index.block(b, 1), 8);
    // The same beginning again is another node.
    EXPECT_NE(index.add(PrefixCache::kRoot, std::vector{1, 2}, std::vector{1, 1}), a);
}

TEST(BlockPool, TakesKeptBlocksLastTheOldestFirst) {
    BlockPool pool(4);
    std::vector<int32_t> lost, table;
    pool.on_loss([&](int32_t block) { lost.push_back(block); });
    pool.take(4, table);
    for (const int32_t block : {2, 0, 1}) {
        if (block != 0) pool.keep(block);
        pool.give_back(block);
    }
    EXPECT_EQ(pool.free(), 3);
    std::vector<int32_t> taken;
    pool.take(2, taken);
    EXPECT_EQ(taken, (std::vector<int32_t>{0, 2}));
    EXPECT_EQ(lost, (std::vector<int32_t>{2}));
    // A block whose contents were lost is an ordinary one.
    pool.give_back(2);
    pool.take(1, taken);
    EXPECT_EQ(taken.back(), 2);
    EXPECT_EQ(lost.size(), 1u);
}

TEST(BlockPool, CountsReferences) {
    BlockPool pool(2);
    std::vector<int32_t> table;
    pool.take(1, table);
    pool.keep(0);
    pool.share(0);
    pool.give_back(0);
    EXPECT_EQ(pool.free(), 1);
    pool.give_back(0);
    EXPECT_EQ(pool.free(), 2);
    pool.share(0);  // wanted again
    EXPECT_EQ(pool.free(), 1);
    pool.take(1, table);
    EXPECT_EQ(table, (std::vector<int32_t>{0, 1}));
}

}  // namespace
}  // namespace hark
