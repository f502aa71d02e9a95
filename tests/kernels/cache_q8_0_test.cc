// Caches of q8_0: keys and values as blocks of 32 channels with a scale.
#include "kernels/attention_case.h"

namespace hark::test {
namespace {

class CacheQ8 : public testing::TestWithParam<DeviceCase> {};

constexpr int64_t kCacheHeads = 2, kCacheSize = 64, kCachePlaces = 40, kCacheRows = 37;

// A cache with two slots, and the second one's layout: all its rows are new.
struct Caches {
    Tensor keys, values;
    BatchLayout rows;

    explicit Caches(TestDevice& device)
        : keys(device.up(zeros(), Dtype::q8_0, {2, kCacheHeads, kCachePlaces, kCacheSize})),
          values(device.up(zeros(), Dtype::q8_0, {2, kCacheHeads, kCachePlaces, kCacheSize})),
          rows{device.up(std::vector<int32_t>{0, kCacheRows}), device.up(std::vector<int32_t>{1}),
               device.up(std::vector<int32_t>{kCacheRows}), kCacheRows, kCacheRows} {}
    static std::vector<float> zeros() {
        return std::vector<float>(2 * kCacheHeads * kCachePlaces * kCacheSize);
    }
};

// The rows that a cache got: row t of head h is x[t][first + h * kCacheSize ..].
void expect_rows(const std::vector<float>& cache, const std::vector<float>& x, int64_t width,
                 int64_t first) {
    for (int64_t i = 0; i < std::ssize(cache); i += 32) {
        const int64_t slot = i / kCacheSize / kCachePlaces / kCacheHeads,
                      h = i / kCacheSize / kCachePlaces % kCacheHeads;
        const int64_t t = i / kCacheSize % kCachePlaces, c = i % kCacheSize;
        const bool is_row = slot == 1 && t < kCacheRows;
        float top = 0;
        for (int64_t j = 0; j < 32 && is_row; ++j)
            top = std::max(top, std::abs(x[t * width + first + h * kCacheSize + c + j]));
        // Half a quant, and the scale's rounding to f16.
        const double most = top / 127 * 0.5 + top * 0x1p-11;
        for (int64_t j = 0; j < 32; ++j) {
            const float wanted = is_row ? x[t * width + first + h * kCacheSize + c + j] : 0;
            EXPECT_NEAR(cache[i + j], wanted, most * 1.0001) << "slot " << slot << " row " << t;
        }
    }
}

TEST_P(CacheQ8, AppendedRowsAreWithinHalfAQuant) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    constexpr int64_t kFirst = 24, kWidth = kFirst + 2 * kCacheHeads * kCacheSize;
    const std::vector<float> x =
        TestDevice::rounded(random_values(kCacheRows * kWidth, 5, 3), GetParam().activations);
    const Caches to(device);
    append_cache(device.ctx(), to.keys, to.values,
                 device.up(x, GetParam().activations, {kCacheRows, kWidth}), kFirst, to.rows);
    expect_rows(device.down(to.keys), x, kWidth, kFirst);
    expect_rows(device.down(to.values), x, kWidth, kFirst + kCacheHeads * kCacheSize);
}

// rope_append writes the keys that it has turned.
TEST_P(CacheQ8, RopeAppendWritesTurnedKeys) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    constexpr int64_t kWidth = kCacheHeads * kCacheSize;
    const std::vector<float> q = random_values(kCacheRows * kWidth, 6),
                             k = random_values(q.size(), 7),
                             v = TestDevice::rounded(random_values(q.size(), 8), type);
    std::vector<int32_t> position(kCacheRows);
    for (int32_t t = 0; t < kCacheRows; ++t) position[static_cast<size_t>(t)] = t;
    const Rope rope{device.up(random_values(kCacheSize / 2, 9), Dtype::f32, {kCacheSize / 2}), 1};
    const Columns columns[] = {{device.up(q, type, {kCacheRows, kWidth})},
                               {device.up(k, type, {kCacheRows, kWidth})},
                               {device.up(v, type, {kCacheRows, kWidth})}};
    const Caches to(device);
    rope_append(device.ctx(), to.keys, to.values, columns[0], columns[1], columns[2], kCacheHeads,
                device.up(position), rope, {}, {}, to.rows);
    expect_rows(device.down(to.keys), device.down(columns[1].rows), kWidth, 0);
    expect_rows(device.down(to.values), v, kWidth, 0);
}

TEST_P(CacheQ8, WhatIsNotFiniteIsNotFiniteInTheCache) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    std::vector<float> x(kCacheRows * 2 * kCacheHeads * kCacheSize, 1.0f);
    x[40] = INFINITY;  // row 0, head 0, its second block
    const Caches to(device);
    append_cache(device.ctx(), to.keys, to.values,
                 device.up(x, GetParam().activations, {kCacheRows, 2 * kCacheHeads * kCacheSize}),
                 0, to.rows);
    const std::vector<float> keys = device.down(to.keys);
    const int64_t row = kCacheHeads * kCachePlaces * kCacheSize;
    EXPECT_TRUE(std::isnan(keys[row + 32]));
    EXPECT_NEAR(keys[row + 31], 1, 1e-3);
}

// Of few queries the sums are those over the numbers that the blocks stand for, to the bit.
TEST_P(CacheQ8, FewQueriesComputeWithTheBlocksNumbers) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const int64_t size : {64, 96, 128}) {
        AttentionCase c = {4, 2, size, 600, {1, 3, 1}, {600, 300, 5}, true, Dtype::q8_0};
        const Inputs in(c, GetParam().activations, 23);
        const std::vector<float> found = run(device, c, in, GetParam().activations);
        c.cache = Dtype::f32;
        EXPECT_EQ(found, run(device, c, in, GetParam().activations)) << size;
    }
}

TEST_P(CacheQ8, RowsOfHalfABlockAreAnError) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Tensor cache(device.empty(Dtype::u8, {4096}).data, Dtype::q8_0, {1, 2, 8, 48},
                       GetParam().device);
    const Tensor x = device.empty(GetParam().activations, {1, 192});
    const BatchLayout rows = {device.up(std::vector<int32_t>{0, 1}),
                              device.up(std::vector<int32_t>{0}),
                              device.up(std::vector<int32_t>{1}), 1, 1};
    EXPECT_THROW(append_cache(device.ctx(), cache, cache, x, 0, rows), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, CacheQ8,
                         testing::Values(kCpuCase, kCudaF32Case, kCudaF16Case, kCudaBf16Case),
                         name_of_case);

}  // namespace
}  // namespace hark::test
