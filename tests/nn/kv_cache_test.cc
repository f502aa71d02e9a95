// The pool of blocks, and what a cache of blocks keeps.
#include "nn/kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "kernels/runtime/backend.h"
#include "support/error_of.h"
#include "support/ops.h"

namespace hark {
namespace {

constexpr int64_t kHeads = 2, kHeadDim = 8, kWidth = kHeads * kHeadDim;

KvCacheShape shape_of(int64_t window, int64_t capacity, int64_t block, int64_t most_rows) {
    return {.layers = {LayerKeeps::keys(0, capacity), LayerKeeps::keys(window, capacity),
                       LayerKeeps::keys(0, capacity)},
            .heads = kHeads,
            .head_dim = kHeadDim,
            .capacity = capacity,
            .block = block,
            .most_rows = most_rows};
}

// A sequence's queries, keys and values, and attention over them by layer 1 of a cache.
class Passes {
  public:
    explicit Passes(const KvCacheShape& shape)
        : cache(shape, cpu_memory()),
          window_(shape.layers[1].window),
          values_(test::random_values(std::min<int64_t>(shape.capacity, 5000) * 3 * kWidth, 7)) {}

    // The outputs of the next n rows of the sequence.
    std::vector<float> run(int64_t n) {
        const Arena::Scope scope(ctx_.arena);
        HostBatchLayout rows;
        length_ += n;
        rows.add(0, n, length_);
        const BatchLayout layout = cache.layouts(ctx_, rows)[cache.group_of(1)];
        Tensor x(values_.data() + (length_ - n) * 3 * kWidth, Dtype::f32, {n, 3 * kWidth});
        append_cache(ctx_, cache.keys[1], cache.values[1], x, kWidth, layout);
        std::vector<float> out(static_cast<size_t>(n * kWidth));
        attention(ctx_, Tensor(out.data(), Dtype::f32, {n, kWidth}), x, cache.keys[1],
                  cache.values[1], layout, {.scale = 0.3f, .causal = true, .window = window_});
        return out;
    }
    // What is given back may hold anything.
    void spoil() {
        for (const auto* tensors : {&cache.keys, &cache.values})
            for (const Tensor& tensor : *tensors)
                std::fill_n(tensor.as<float>(), tensor.size(), std::nanf(""));
    }

    KvCache cache;

  private:
    Context ctx_ = make_cpu_context(2);
    int64_t window_, length_ = 0;
    std::vector<float> values_;
};

TEST(BlockPool, GivesFreshBlocksThenThoseGivenBack) {
    BlockPool pool(4);
    std::vector<int32_t> a, b;
    pool.take(2, a);
    EXPECT_EQ(a, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(pool.free(), 2);
    pool.give_back(0);
    EXPECT_EQ(pool.free(), 3);
    pool.take(2, b);
    EXPECT_EQ(b, (std::vector<int32_t>{0, 2}));
    EXPECT_EQ(pool.touched(), 3);
    const std::string error = test::error_of([&] { pool.take(2, b); });
    EXPECT_EQ(error, "the key/value cache is full: 2 more blocks needed, 1 of 4 free");
    EXPECT_EQ(b.size(), 2u);
    EXPECT_EQ(pool.free(), 1);
}

TEST(KvCache, LayersThatKeepTheSameAreAGroup) {
    const KvCache cache(shape_of(10, 100, 32, 8), cpu_memory());
    EXPECT_EQ(cache.groups(), 2u);
    EXPECT_EQ(cache.group_of(0), cache.group_of(2));
    EXPECT_NE(cache.group_of(0), cache.group_of(1));
    // A window as long as a sequence keeps all.
    EXPECT_EQ(KvCache(shape_of(100, 100, 32, 8), cpu_memory()).groups(), 1u);
}

TEST(KvCache, MemoryFollowsTheText) {
    Passes passes(shape_of(0, 1 << 20, 32, 512));
    EXPECT_EQ(passes.cache.bytes(), 0);
    const auto bytes_of = [](int64_t blocks) { return blocks * 32 * kWidth * 4 * 2 * 3; };
    passes.run(33);
    EXPECT_EQ(passes.cache.bytes(), bytes_of(2));
    passes.run(200);  // 8 blocks
    EXPECT_EQ(passes.cache.bytes(), bytes_of(8));
    passes.run(24);
    EXPECT_EQ(passes.cache.bytes(), bytes_of(12));
    EXPECT_EQ(passes.cache.pool(0).free(), (1 << 20) / 32 - 9);
    passes.cache.clear(0);
    EXPECT_EQ(passes.cache.pool(0).free(), (1 << 20) / 32);
    EXPECT_EQ(passes.cache.bytes(), bytes_of(12));
}

// Latent attention: the values are columns of the keys.
TEST(KvCache, MayHaveNoValues) {
    Context ctx = make_cpu_context(1);
    KvCacheShape shape = shape_of(0, 1 << 20, 32, 512);
    shape.has_values = false;
    KvCache cache(shape, cpu_memory());
    HostBatchLayout rows;
    rows.add(0, 40, 40);
    cache.layouts(ctx, rows);
    EXPECT_EQ(cache.bytes(), 2 * 32 * kWidth * 4 * 3);
    for (const Tensor& values : cache.values) EXPECT_FALSE(values);
}

TEST(KvCache, AWindowsMemoryIsBoundedByItAndOnePass) {
    constexpr int64_t kWindow = 100, kRows = 70, kCapacity = 5000;
    Passes passes(shape_of(kWindow, kCapacity, 32, kRows));
    const BlockPool& pool = passes.cache.pool(passes.cache.group_of(1));
    for (int64_t length = 0, i = 0; length + kRows <= kCapacity; ++i) {
        const int64_t n = i % 3 == 0 ? 1 : i % 3 == 1 ? kRows : 13;
        passes.run(n);
        length += n;
    }
    EXPECT_LE(pool.touched(), pool.most());
    EXPECT_LE(pool.most() * 32, kWindow + kRows + 2 * 32);  // the first and the last one in part
    EXPECT_GT(passes.cache.pool(passes.cache.group_of(0)).touched(), 4500 / 32);
}

// In blocks of 32, of 5 and of all: the same bits, though earlier blocks hold other keys by then.
TEST(KvCache, BlocksDoNotChangeTheBits) {
    for (const int64_t window : {int64_t{0}, int64_t{7}, int64_t{300}}) {
        constexpr int64_t kCapacity = 1400, kRows = 600;
        Passes slot(shape_of(window, kCapacity, 0, kRows));
        Passes blocks(shape_of(window, kCapacity, 32, kRows));
        Passes odd(shape_of(window, kCapacity, 5, kRows));
        int64_t length = 0;
        for (const int64_t n : {3, 600, 1, 1, 30, 257, 9, 8, 450, 1}) {
            const std::vector<float> expected = slot.run(n);
            for (Passes* passes : {&blocks, &odd}) {
                const std::vector<float> found = passes->run(n);
                ASSERT_EQ(std::memcmp(found.data(), expected.data(), 4 * expected.size()), 0)
                    << "window " << window << ", " << n << " rows after " << length;
            }
            length += n;
        }
    }
}

// Keys before the window are not read: not a number would be in the result.
TEST(KvCache, WhatIsBeforeTheWindowIsNotRead) {
    for (const int64_t rows : {1, 64}) {
        Passes passes(shape_of(32, 1000, 32, 512));
        for (int64_t i = 0; i < 9; ++i) passes.run(32);
        passes.spoil();
        passes.run(32);  // its rows still see spoilt keys; the next ones see these 32 and their own
        passes.run(31);
        for (const float x : passes.run(rows)) ASSERT_TRUE(std::isfinite(x)) << rows;
    }
}

TEST(KvCache, SequencesShareThePool) {
    KvCacheShape shape = shape_of(0, 96, 32, 96);
    shape.sequences = 2;
    KvCache cache(shape, cpu_memory());
    Context ctx = make_cpu_context(1);
    HostBatchLayout both;
    both.add(1, 33, 33);
    both.add(0, 1, 1);
    const BatchLayout layout = cache.layouts(ctx, both)[0];
    ASSERT_EQ(layout.blocks(), 2);
    const int32_t* table = layout.block_table.as<int32_t>();
    EXPECT_EQ(std::vector<int32_t>(table, table + 3), (std::vector<int32_t>{0, 1, 2}));
    EXPECT_EQ(cache.pool(0).free(), 3);
    cache.clear(1);
    EXPECT_EQ(cache.pool(0).free(), 5);
    HostBatchLayout too_long;
    too_long.add(0, 1, 97);
    EXPECT_EQ(test::error_of([&] { cache.layouts(ctx, too_long); }),
              "the key/value cache has room for 96 tokens of a sequence, found 97");
    HostBatchLayout third;
    third.add(2, 1, 1);
    EXPECT_EQ(test::error_of([&] { cache.layouts(ctx, third); }),
              "the key/value cache has 2 sequences, found number 2");
}

// A slot is one block, in memory from the beginning: Whisper and the GPU's steps rely on it.
TEST(KvCache, SlotsAreInMemoryFromTheBeginning) {
    KvCacheShape shape = shape_of(10, 50, 0, 8);
    shape.sequences = 3;
    const KvCache cache(shape, cpu_memory());
    for (const Tensor& keys : cache.keys) {
        EXPECT_EQ(keys.dim(0), 3);
        EXPECT_EQ(keys.dim(2), 50);
    }
}

}  // namespace
}  // namespace hark
