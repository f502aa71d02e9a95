#include "nn/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/blocks.h"
#include "support/ops.h"

namespace hark::test {
namespace {

using Kind = WeightPrecision;

std::vector<float> values_of(const Matrix& matrix) {
    std::vector<float> values;
    for (int64_t i = 0; i < matrix.values.size(); ++i)
        values.push_back(matrix.values.as<int8_t>()[i] *
                         matrix.scales.as<float>()[i / matrix.values.dim(1)]);
    return values;
}

// (4, 35): the second row has large values, the third has none.
std::vector<float> four_rows() {
    std::vector<float> values = random_values(4 * 35, 3);
    for (size_t i = 0; i < 35; ++i) values[35 + i] *= 1000, values[70 + i] = 0;
    return values;
}

float largest_of_row(const std::vector<float>& values, size_t row) {
    float largest = 0;
    for (size_t i = 0; i < 35; ++i) largest = std::max(largest, std::abs(values[row * 35 + i]));
    return largest;
}

TEST(Weights, KeepTakesF16OnlyWhereNothingIsLost) {
    TestDevice device(kCpuCase);
    const std::vector<float> exact = TestDevice::rounded(random_values(6 * 9, 1), Dtype::f16);
    std::vector<float> more = exact;
    more.back() = 1 + 1.0f / 65536;
    WeightStore weights;
    const Matrix kept = weights.matrix({device.up(exact, Dtype::f32, {6, 9})});
    EXPECT_EQ(kept.values.dtype, Dtype::f16);
    EXPECT_EQ(device.down(kept.values), exact);
    const Matrix wide = weights.matrix({device.up(more, Dtype::f32, {6, 9})});
    EXPECT_EQ(wide.values.dtype, Dtype::f32);
    EXPECT_EQ(device.down(wide.values), more);
    const Matrix from_half = weights.matrix({device.up(exact, Dtype::f16, {6, 9})});
    EXPECT_EQ(device.down(from_half.values), exact);
    std::vector<float> beyond(4, 1e5f);  // finite, but not as f16
    EXPECT_EQ(weights.matrix({device.up(beyond, Dtype::f32, {2, 2})}).values.dtype, Dtype::f32);
    EXPECT_THROW(weights.matrix({device.up(beyond, Dtype::f32, {2, 2})}, Kind::f16), Error);
}

TEST(Weights, RoundsToTheWantedPrecision) {
    TestDevice device(kCpuCase);
    const std::vector<float> stored = random_values(5 * 33, 2);
    WeightStore weights(Kind::bf16);
    const Tensor from = device.up(stored, Dtype::f32, {5, 33});
    EXPECT_EQ(device.down(weights.matrix({from}).values), TestDevice::rounded(stored, Dtype::bf16));
    EXPECT_EQ(device.down(weights.matrix({from}, Kind::f16).values),
              TestDevice::rounded(stored, Dtype::f16));
    EXPECT_EQ(device.down(weights.matrix({from}, Kind::f32).values), stored);
}

TEST(Weights, Int8HasAScaleARow) {
    TestDevice device(kCpuCase);
    const std::vector<float> stored = four_rows();
    WeightStore weights(Kind::int8);
    const Matrix matrix = weights.matrix({device.up(stored, Dtype::f32, {4, 35})});
    const std::vector<float> found = values_of(matrix);
    for (size_t row = 0; row < 4; ++row) {
        const float largest = largest_of_row(stored, row);
        EXPECT_FLOAT_EQ(matrix.scales.as<float>()[row], largest / 127);
        for (size_t i = 0; i < 35; ++i)
            EXPECT_NEAR(found[row * 35 + i], stored[row * 35 + i], largest / 127 * 0.5001);
    }
}

TEST(Weights, Fp8HasAScaleARow) {
    TestDevice device(kCpuCase);
    const std::vector<float> stored = four_rows();
    WeightStore weights(Kind::fp8);
    const Matrix matrix = weights.matrix({device.up(stored, Dtype::f32, {4, 35})});
    ASSERT_EQ(describe(matrix.values), "fp8 (4, 35)");
    for (size_t row = 0; row < 4; ++row) {
        const float largest = largest_of_row(stored, row);
        const float scale = matrix.scales.as<float>()[row];
        EXPECT_NEAR(scale, largest / 448, 1e-30);
        for (size_t i = row * 35; i < (row + 1) * 35; ++i)
            EXPECT_NEAR(to_float(matrix.values.as<fp8_t>()[i]) * scale, stored[i],
                        std::max(std::abs(stored[i]) / 16, scale * 0x1p-10f));
    }
}

TEST(Weights, StacksTransposesAndReordersTaps) {
    TestDevice device(kCpuCase);
    const Tensor a = device.up({1, 2, 3, 4}, Dtype::f32, {2, 2});
    const Tensor b = device.up({5, 6}, Dtype::f16, {1, 2});
    WeightStore weights(Kind::f32);
    EXPECT_EQ(device.down(weights.matrix({a, b}).values), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    const Tensor c = device.up({1, 2, 3, 4, 5, 6}, Dtype::bf16, {2, 3});
    const Matrix turned = weights.transposed({c, a});
    EXPECT_EQ(device.down(turned.values), (std::vector<float>{1, 4, 2, 5, 3, 6, 1, 3, 2, 4}));
    EXPECT_EQ(turned.values.dim(0), 5);
    const Tensor taps = device.up({1, 2, 3, 10, 20, 30}, Dtype::f32, {1, 2, 3});
    EXPECT_EQ(device.down(weights.convolution(taps).values),
              (std::vector<float>{1, 10, 2, 20, 3, 30}));
    const Tensor bias = device.up({7, 8}, Dtype::f16, {2});
    EXPECT_EQ(device.down(weights.vector({bias, zeros_of(3), bias})),
              (std::vector<float>{7, 8, 0, 0, 0, 7, 8}));
    EXPECT_EQ(device.down(weights.table(c)), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(weights.table(c).dim(1), 3);
}

// Parts of a quantised matrix, as DeepSeek's GGUF files may have them.
TEST(Weights, TransposesBlocksAndPartsOfOneShape) {
    TestDevice device(kCpuCase);
    RandomBlocks stored(Dtype::q8_0, 6, 32, 1);
    std::vector<float> numbers = stored.values();
    const Tensor wide = TestDevice::host(numbers, {6, 32});
    for (const Kind kind : {Kind::as_stored, Kind::f32, Kind::f16, Kind::int8, Kind::fp8}) {
        WeightStore weights(kind);
        const auto parts_of = [&](const Tensor& all) {
            return weights.transposed_matrices({all.slice(0, 3), all.slice(3, 6)});
        };
        const std::vector<Matrix> found = parts_of(stored.tensor()), expected = parts_of(wide);
        ASSERT_EQ(found.size(), 2u);
        for (size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(describe(found[i].values), describe(expected[i].values));
            EXPECT_EQ(found[i].values.dim(0), 32);
            EXPECT_EQ(
                std::memcmp(found[i].values.data, expected[i].values.data, found[i].values.bytes()),
                0);
        }
        if (kind != Kind::f32) continue;
        EXPECT_EQ(found[1].values.as<float>()[3 * 5 + 2], numbers[(3 + 2) * 32 + 5]);
    }
}

TEST(Weights, WhatDoesNotFitIsAnError) {
    TestDevice device(kCpuCase);
    const Tensor a = device.up({1, 2, 3, 4}, Dtype::f32, {2, 2});
    const Tensor b = device.up({1, 2, 3}, Dtype::f32, {1, 3});
    const Tensor ids = device.up(std::vector<int32_t>{1, 2});
    WeightStore weights;
    EXPECT_THROW(weights.matrix({a, b}), Error);
    EXPECT_THROW(weights.transposed({a, b}), Error);
    EXPECT_THROW(weights.matrix({ids}), Error);
    EXPECT_THROW(weights.vector({a}), Error);
    EXPECT_THROW(weights.vector({ids}), Error);
    EXPECT_THROW(weights.convolution(a), Error);
    for (const float bad : {std::numeric_limits<float>::infinity(), NAN})
        for (const Kind kind :
             {Kind::as_stored, Kind::f32, Kind::f16, Kind::bf16, Kind::int8, Kind::fp8})
            EXPECT_THROW(weights.matrix({device.up({1, bad}, Dtype::f32, {1, 2})}, kind), Error);
}

TEST(Weights, VectorsAndTablesHoldFiniteValuesOnly) {
    TestDevice device(kCpuCase);
    WeightStore weights;
    const Tensor good = device.up({1, 2}, Dtype::f32, {2});
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), NAN})
        for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
            const Tensor wrong = device.up({3, bad}, dtype, {2});
            EXPECT_THROW(weights.vector({wrong}), Error);
            EXPECT_THROW(weights.vector({good, zeros_of(2), wrong}), Error);
            EXPECT_THROW(weights.table(device.up({1, 2, bad, 4}, dtype, {2, 2})), Error);
        }
    // The largest float is one.
    const float largest = std::numeric_limits<float>::max();
    const Tensor large = device.up({largest, largest}, Dtype::f32, {2});
    EXPECT_EQ(device.down(weights.vector({large})), (std::vector<float>{largest, largest}));
    EXPECT_EQ(device.down(weights.table(large)), (std::vector<float>{largest, largest}));
}

TEST(Weights, SayHowMuchTheyTake) {
    WeightStore weights;
    Tensor table = weights.empty(Dtype::f16, {10, 7});
    EXPECT_EQ(weights.bytes(), 140u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(table.data) % 64, 0u);
    const WeightStore moved = std::move(weights);
    EXPECT_EQ(moved.bytes(), 140u);
}

}  // namespace
// On any number of threads, in memory of each type: the same values, and the first row's error.
TEST(Weights, DoNotDependOnTheThreads) {
    TestDevice device(kCpuCase);
    constexpr int64_t kRows = 333, kSize = 40;
    for (const Dtype stored : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        const std::vector<float> values =
            TestDevice::rounded(random_values(kRows * kSize, 9), stored);
        const Tensor from = device.up(values, stored, {kRows, kSize});
        for (const Kind kind :
             {Kind::as_stored, Kind::f32, Kind::f16, Kind::bf16, Kind::int8, Kind::fp8}) {
            SCOPED_TRACE(concat(name_of(stored), " as ", static_cast<int>(kind)));
            WeightStore one(kind), many(kind, cpu_memory(), 5);
            const Matrix expected = one.matrix({from, from}), found = many.matrix({from, from});
            ASSERT_EQ(found.values.dtype, expected.values.dtype);
            ASSERT_EQ(found.values.dim(0), 2 * kRows);
            EXPECT_EQ(std::memcmp(found.values.data, expected.values.data, found.values.bytes()),
                      0);
            if (kind == Kind::int8) {
                EXPECT_EQ(values_of(found), values_of(expected));
            }
            EXPECT_EQ(one.bytes(), many.bytes());
        }
    }
    std::vector<float> broken = random_values(kRows * kSize, 10);
    broken[7 * kSize] = 70000, broken[300 * kSize] = 80000;
    WeightStore weights(Kind::f16, cpu_memory(), 5);
    try {
        weights.matrix({device.up(broken, Dtype::f32, {kRows, kSize})});
        FAIL() << "70000 was taken";
    } catch (const Error& why) {
        EXPECT_NE(std::string(why.what()).find("70000"), std::string::npos) << why.what();
    }
}

// As they may be stored in a file.
TEST(Weights, StoredValuesNeedNotBeAligned) {
    const std::vector<float> values = random_values(20 * 12, 12);
    std::vector<std::byte> file(values.size() * 4 + 3);
    for (const size_t offset : {1, 2, 3}) {
        std::memcpy(file.data() + offset, values.data(), values.size() * 4);
        WeightStore weights(Kind::f32, cpu_memory(), 2);
        const Matrix found = weights.matrix({Tensor(file.data() + offset, Dtype::f32, {20, 12})});
        EXPECT_EQ(std::memcmp(found.values.data, values.data(), values.size() * 4), 0) << offset;
    }
}

// Of every type, in every row, stored as it is wanted or not.
TEST(Weights, RefuseWhatIsNotFinite) {
    TestDevice device(kCpuCase);
    for (const Dtype stored : {Dtype::f32, Dtype::f16, Dtype::bf16})
        for (const Kind kind :
             {Kind::as_stored, Kind::f32, Kind::f16, Kind::bf16, Kind::int8, Kind::fp8})
            for (const float value : {INFINITY, -INFINITY, NAN})
                for (const size_t place : {0, 70 * 8 + 3, 100 * 8 - 1}) {
                    std::vector<float> values = random_values(100 * 8, 11);
                    values[place] = value;
                    WeightStore weights(kind, cpu_memory(), 3);
                    EXPECT_THROW(weights.matrix({device.up(values, stored, {100, 8})}), Error)
                        << name_of(stored) << " " << place << " " << value;
                }
}

}  // namespace hark::test
