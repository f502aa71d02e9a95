// The pool's memory: it comes by slabs when blocks are taken, and goes when no text has them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>

#include "nn/kv_cache.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/ops.h"
#include "support/scarce_memory.h"

namespace hark {
namespace {

constexpr int64_t kMiB = 1 << 20;

// One layer: a token has 2 KiB of keys and as much of values, so a slab of 2 MiB has 1,024 tokens.
KvCacheShape pool_of(int64_t tokens) {
    return {.layers = {LayerKeeps{}},
            .heads = 8,
            .head_dim = 64,
            .sequences = 4,
            .capacity = tokens,
            .block = kBlockTokens,
            .pool_tokens = tokens};
}

int64_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    int64_t all = 0, resident = 0;
    file >> all >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
}

class KvCacheSlabs : public testing::TestWithParam<test::DeviceCase> {
  protected:
    void SetUp() override {
        if (!device_) GTEST_SKIP() << device_.why_not();
        if (!device_.ctx().arena.source().reserve) GTEST_SKIP() << "no slabs on this device";
    }
    Context& ctx() { return device_.ctx(); }
    // Bytes of the host or of the GPU that this process has, or has less of than before.
    int64_t used() { return ctx().on_cuda() ? -free_memory(ctx()) : resident_bytes(); }
    // Calls use(rows, first, n) for pieces of a sequence's first n rows, whose bytes depend on
    // `value`. The pieces are small, so that the test itself takes no memory.
    template <class Use>
    void for_pieces(const KvCache& cache, int64_t n, int value, const Use& use) {
        std::vector<std::byte> rows(static_cast<size_t>(cache.rows_bytes(500)));
        for (size_t i = 0; i < rows.size(); ++i)
            rows[i] = static_cast<std::byte>(static_cast<int>(i % 251) + value);
        for (int64_t first = 0; first < n; first += 500)
            use(rows, first, std::min<int64_t>(n - first, 500));
    }
    void write(KvCache& cache, int64_t sequence, int64_t n, int value) {
        for_pieces(cache, n, value, [&](const auto& rows, int64_t first, int64_t count) {
            for (const Tensor& tensor : {cache.keys[0], cache.values[0]})
                cache.write_rows(ctx(), tensor, rows.data(), 0, sequence, first, count);
        });
    }
    void expect_rows(const KvCache& cache, int64_t sequence, int64_t n, int value) {
        std::vector<std::byte> found(static_cast<size_t>(cache.rows_bytes(500)));
        for_pieces(cache, n, value, [&](const auto& rows, int64_t first, int64_t count) {
            const auto bytes = static_cast<size_t>(cache.rows_bytes(count));
            for (const Tensor& tensor : {cache.keys[0], cache.values[0]}) {
                cache.read_rows(ctx(), found.data(), tensor, 0, sequence, first, count);
                EXPECT_EQ(std::memcmp(found.data(), rows.data(), bytes), 0) << first;
            }
        });
    }

    test::TestDevice device_{GetParam()};
};

TEST_P(KvCacheSlabs, MemoryGrowsWithUseAndFallsAfter) {
    KvCache cache(pool_of(32768), ctx().arena.source());
    EXPECT_EQ(cache.bytes(), 0);
    EXPECT_EQ(cache.most_bytes(), 128 * kMiB);
    const void* const address = cache.keys[0].data;
    const int64_t before = used();
    ASSERT_TRUE(cache.make_room(0, 0, 1000));
    EXPECT_EQ(cache.bytes(), 4 * kMiB);
    write(cache, 0, 1000, 1);
    EXPECT_LT(used() - before, 30 * kMiB);
    ASSERT_TRUE(cache.make_room(0, 1000, 32768));
    EXPECT_EQ(cache.bytes(), 128 * kMiB);
    expect_rows(cache, 0, 1000, 1);  // its slab stayed where it was
    write(cache, 0, 32768, 2);
    EXPECT_GT(used() - before, 120 * kMiB);
    EXPECT_EQ(cache.keys[0].data, address);
    cache.clear(0);
    EXPECT_EQ(cache.bytes(), 128 * kMiB);
    cache.give_memory_back(ctx());
    EXPECT_EQ(cache.bytes(), 0);
    EXPECT_LT(used() - before, 30 * kMiB);
    ASSERT_TRUE(cache.make_room(1, 0, 2000));  // it comes again
    write(cache, 1, 2000, 3);
    expect_rows(cache, 1, 2000, 3);
    EXPECT_EQ(cache.bytes(), 8 * kMiB);
}

TEST_P(KvCacheSlabs, WhatATextHasStays) {
    KvCache cache(pool_of(8192), ctx().arena.source());
    ASSERT_TRUE(cache.make_room(0, 0, 1000));
    ASSERT_TRUE(cache.make_room(1, 0, 3000));
    ASSERT_TRUE(cache.make_room(2, 0, 100));
    write(cache, 0, 1000, 1);
    write(cache, 2, 100, 2);
    EXPECT_EQ(cache.bytes(), 5 * 4 * kMiB);
    cache.clear(1);
    cache.give_memory_back(ctx());  // slabs in the middle stay: blocks after them are in use
    EXPECT_EQ(cache.bytes(), 5 * 4 * kMiB);
    expect_rows(cache, 2, 100, 2);
    cache.clear(2);
    cache.give_memory_back(ctx());
    EXPECT_EQ(cache.bytes(), 4 * kMiB);
    expect_rows(cache, 0, 1000, 1);
}

INSTANTIATE_TEST_SUITE_P(Devices, KvCacheSlabs, testing::Values(test::kCpuCase, test::kCudaF32Case),
                         test::name_of_case);

// The first block's tokens are `first`, `first` + 1, ...
std::vector<int32_t> tokens_from(int32_t first, int64_t n) {
    std::vector<int32_t> tokens(static_cast<size_t>(n));
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

TEST(KvCacheScarceSlabs, ASequenceThatHasNoMemoryWaits) {
    Context ctx;
    KvCache cache(pool_of(1024), test::ScarceMemory::of(cpu_memory()));
    test::ScarceMemory::most_slab_bytes = 4 * 2 * kBlockTokens * 2048;  // four blocks
    ASSERT_TRUE(cache.make_room(0, 0, 3 * kBlockTokens));
    EXPECT_FALSE(cache.make_room(1, 0, 2 * kBlockTokens));
    test::expect_contains(cache.lack(), "needed a slab of");
    EXPECT_TRUE(cache.make_room(1, 0, kBlockTokens));
    EXPECT_EQ(cache.lack(), "");
    cache.clear(0);
    EXPECT_TRUE(cache.make_room(1, 0, 4 * kBlockTokens));  // blocks of the other one
    HostBatchLayout rows;
    rows.add(2, 1, 1);
    EXPECT_THROW(cache.layouts(ctx, rows), OutOfMemory);
    test::ScarceMemory::most_slab_bytes *= 2;
    EXPECT_TRUE(cache.make_room(2, 0, 1));
    EXPECT_EQ(cache.bytes(), test::ScarceMemory::slab_bytes);
}

TEST(KvCacheScarceSlabs, KeptBeginningsAreUsedWhereThereIsNoMemory) {
    Context ctx;
    KvCache cache(pool_of(1024), test::ScarceMemory::of(cpu_memory()));
    test::ScarceMemory::most_slab_bytes = 4 * 2 * kBlockTokens * 2048;
    const std::vector<int32_t> first = tokens_from(0, 2 * kBlockTokens),
                               second = tokens_from(5000, kBlockTokens);
    ASSERT_TRUE(cache.make_room(0, 0, std::ssize(first)));
    cache.add_prefix(0, first);
    ASSERT_TRUE(cache.make_room(1, 0, std::ssize(second)));
    cache.add_prefix(1, second);
    cache.clear(0);
    cache.clear(1);
    ASSERT_TRUE(cache.make_room(2, 0, 2 * kBlockTokens));  // a fresh block, the oldest kept one
    EXPECT_EQ(cache.start_with_prefix(0, first), 0);
    EXPECT_EQ(cache.start_with_prefix(1, second), kBlockTokens);
    cache.clear(1);
    cache.clear(2);
    cache.give_memory_back(ctx);
    EXPECT_EQ(cache.bytes(), 0);
    EXPECT_EQ(cache.start_with_prefix(1, second), 0);
}

}  // namespace
}  // namespace hark
