// Quantised weights in memory, and what is computed with them: what their values as floats give.
#include <array>

#include "kernels/cpu/cpu.h"
#include "kernels/ops.h"
#include "nn/weights.h"
#include "support/blocks.h"
#include "support/normed_and_appended.h"
#include "support/ops.h"
#include "support/tensor_bytes.h"

namespace hark::test {
namespace {

using QuantizedKind = WeightPrecision;

TEST(QuantizedWeights, StayAsTheyAreOneBelowTheOther) {
    for (const Dtype dtype : kQuantizedDtypes) {
        RandomBlocks a(dtype, 3, 512, 1), b(dtype, 2, 512, 2);
        WeightStore weights;
        const Matrix kept = weights.matrix({a.tensor(), b.tensor()});
        EXPECT_EQ(describe(kept.values), describe(Tensor(nullptr, dtype, {5, 512})));
        EXPECT_TRUE(bytes_of(kept.values) == bytes_of(a.tensor()) + bytes_of(b.tensor()));
        EXPECT_FALSE(kept.scales);
        EXPECT_EQ(weights.bytes(), a.bytes().size() + b.bytes().size());
    }
}

TEST(QuantizedWeights, AGpusAutoTakesF16ForAllOthers) {
    TestDevice device(kCpuCase);
    RandomBlocks blocks(Dtype::q5_0, 3, 64, 6);
    std::vector<float> values = random_values(2 * 64, 7);
    WeightStore weights(QuantizedKind::quantized_or_f16);
    EXPECT_EQ(weights.matrix({blocks.tensor()}).values.dtype, Dtype::q5_0);
    const Tensor plain = TestDevice::host(values, {2, 64});
    EXPECT_EQ(device.down(weights.matrix({plain}).values), TestDevice::rounded(values, Dtype::f16));
    EXPECT_EQ(weights.matrix({plain, blocks.tensor()}).values.dtype, Dtype::f16);
}

TEST(QuantizedWeights, AnotherPrecisionOrMixedTypesTakeTheValues) {
    TestDevice device(kCpuCase);
    for (const Dtype dtype : kQuantizedDtypes) {
        RandomBlocks blocks(dtype, 3, 256, 3), others(Dtype::q8_0, 1, 256, 4);
        const std::vector<float> values = blocks.values();
        WeightStore weights;
        for (const auto& [kind, wanted] : {std::pair{QuantizedKind::f32, Dtype::f32},
                                           {QuantizedKind::f16, Dtype::f16},
                                           {QuantizedKind::bf16, Dtype::bf16}})
            EXPECT_EQ(device.down(weights.matrix({blocks.tensor()}, kind).values),
                      TestDevice::rounded(values, wanted));
        std::vector<float> same = values;
        const Matrix from_blocks = weights.matrix({blocks.tensor()}, QuantizedKind::int8);
        const Matrix from_values =
            weights.matrix({TestDevice::host(same, {3, 256})}, QuantizedKind::int8);
        EXPECT_TRUE(bytes_of(from_blocks.values) == bytes_of(from_values.values));
        if (dtype == Dtype::q8_0) continue;
        const Matrix mixed = weights.matrix({blocks.tensor(), others.tensor()});
        EXPECT_FALSE(is_quantized(mixed.values.dtype));
        std::vector<float> both = values;
        for (const float value : others.values()) both.push_back(value);
        EXPECT_EQ(device.down(mixed.values), both) << name_of(dtype);
    }
}

TEST(QuantizedWeights, WhatDoesNotFitIsAnError) {
    RandomBlocks blocks(Dtype::q5_1, 2, 64, 5);
    WeightStore weights;
    EXPECT_THROW(weights.table(blocks.tensor()), Error);
    EXPECT_THROW(weights.vector({Tensor(blocks.bytes().data(), Dtype::q5_1, {64})}), Error);
    EXPECT_THROW(weights.convolution(Tensor(blocks.bytes().data(), Dtype::q5_1, {1, 1, 64})),
                 Error);
    blocks.bytes()[25] = 0x7c;  // the second block's scale is infinity, or not a number
    for (const QuantizedKind kind :
         {QuantizedKind::as_stored, QuantizedKind::f32, QuantizedKind::f16, QuantizedKind::int8})
        EXPECT_THROW(weights.matrix({blocks.tensor()}, kind), Error);
}

class Quantized : public testing::TestWithParam<DeviceCase> {};

struct Operands {
    Matrix quantized, plain;  // the same weights
};

Operands operands(WeightStore& weights, RandomBlocks& blocks, int64_t n, int64_t k) {
    std::vector<float> values = blocks.values();
    return {weights.matrix({blocks.tensor()}, QuantizedKind::as_stored),
            weights.matrix({TestDevice::host(values, {n, k})}, QuantizedKind::f32)};
}

// How far off products may be that round each of x's rows (rows, k) to 16 bits: six deviations of
// that rounding's sum over a row of w (n, k), and what sums in float32 lose.
std::vector<double> rounding_of(const std::vector<float>& x, const std::vector<float>& w, int64_t n,
                                int64_t k) {
    const auto columns = static_cast<size_t>(k);
    std::vector<double> bounds, w2;
    for (int64_t i = 0; i < n; ++i) w2.push_back(dot(&w[i * k], &w[i * k], columns));
    for (auto row = x.begin(); row != x.end(); row += k) {
        const auto [least, most] = std::minmax_element(row, row + k);
        const double largest = std::max<double>(-*least, *most), x2 = dot(&*row, &*row, columns);
        for (const double square : w2)
            bounds.push_back((6 * 0.29 * largest / 32767 + 2e-6 * std::sqrt(x2)) *
                             std::sqrt(square));
    }
    return bounds;
}

// The epilogue of a product in double: bias, gelu, residual.
std::vector<double> product_in_double(const std::vector<float>& x, const std::vector<float>& w,
                                      const std::vector<float>& bias,
                                      const std::vector<float>& residual, int64_t k) {
    const auto n = std::ssize(bias);
    std::vector<double> y;
    for (int64_t i = 0; i < std::ssize(residual); ++i) {
        const double sum = bias[i % n] + dot(&x[i / n * k], &w[i % n * k], static_cast<size_t>(k));
        y.push_back(residual[i] + 0.5 * sum * std::erfc(-sum / std::sqrt(2.0)));
    }
    return y;
}

// On the CPU rows are rounded to 16 bits. More than 16 rows give the bits of f32 weights if the
// processor has no panels. On a GPU all are within rounding.
TEST_P(Quantized, ProductsAreThoseOfTheValues) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const DeviceCase& on = GetParam();
    const bool cpu = on.device == Device::cpu;
    for (const Dtype dtype : kQuantizedDtypes)
        for (const int64_t k : {256, 352, 1280, 4096})  // 4096: a GPU's largest shared memory
            for (const int64_t rows : {1, 7, 16, 17, 33, 50, 256, 1500}) {
                if (k % block_size(dtype).values != 0) continue;
                if (rows == 1500 && cpu) continue;  // a GPU's other path
                if (rows == 256 && (!cpu || k > 352)) continue;
                SCOPED_TRACE(concat(name_of(dtype), " T ", rows, " K ", k));
                const Arena::Scope scope(device.ctx().arena);
                const int64_t n = 37;
                WeightStore weights(QuantizedKind::as_stored, device.ctx().arena.source());
                RandomBlocks blocks(dtype, n, k, 7);
                const Operands w = operands(weights, blocks, n, k);
                ASSERT_EQ(w.quantized.values.dtype, dtype);
                const std::vector<float> inputs = random_values(rows * k, 8);
                const std::vector<float> before = random_values(rows * n, 9);
                const std::vector<float> bias = random_values(n, 10);
                const Tensor x = device.up(inputs, on.activations, {rows, k});
                Epilogue then = {.bias = device.up(bias, Dtype::f32, {n}),
                                 .activation = Activation::gelu,
                                 .residual = device.up(before, on.activations, {rows, n})};
                const Tensor y = device.empty(on.activations, {rows, n});
                linear(device.ctx(), y, x, w.quantized, then);
                const std::vector<float> found = device.down(y);
                if (cpu && (rows <= 16 || cpu_kernels().panels)) {
                    const std::vector<double> expected =
                        product_in_double(inputs, blocks.values(), bias, before, k);
                    const std::vector<double> bounds = rounding_of(inputs, blocks.values(), n, k);
                    for (size_t i = 0; i < expected.size(); ++i)
                        ASSERT_NEAR(found[i], expected[i],
                                    1.13 * bounds[i] + 2e-6 * std::abs(expected[i]) + 2e-6)
                            << "value " << i;
                    continue;
                }
                linear(device.ctx(), y, x, w.plain, then);
                if (cpu)
                    EXPECT_TRUE(found == device.down(y));
                else
                    expect_near(found, device.down(y), 2 * on.tolerance);
            }
}

// Where a GPU's rows may depend on their number: one by itself; in tiles, of all rows or a part, in
// parts of K.
TEST_P(Quantized, ProductsThatNeedNotBeBatchInvariantAreThoseOfTheValues) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const DeviceCase& on = GetParam();
    if (on.device == Device::cpu) GTEST_SKIP() << "the CPU has one kind of products";
    for (const Dtype dtype : kQuantizedDtypes)
        for (const auto& [rows, n, k] : {std::array<int64_t, 3>{1, 37, 256},
                                         {1, 130, 352},
                                         {1, 300, 2048},
                                         {1, 1000, 4096},
                                         {1, 20, 14336},
                                         {1, 48, 256},  // Hopper's copy engine: whole groups
                                         {1, 64, 2048},
                                         {1, 8448, 2048},
                                         {1, 4112, 4096},
                                         {1, 16, 14336},
                                         {1, 1152, 896},  // whole rows
                                         {1, 9744, 896},
                                         {1, 896, 4864},
                                         {9, 37, 256},
                                         {32, 130, 352},
                                         {33, 200, 1280},
                                         {64, 1000, 4096},
                                         {100, 16, 512},
                                         {128, 300, 2048},
                                         {200, 130, 1376},
                                         {256, 1100, 512}}) {
            if (k % block_size(dtype).values != 0) continue;
            SCOPED_TRACE(concat(name_of(dtype), " T ", rows, " K ", k));
            const Arena::Scope scope(device.ctx().arena);
            WeightStore weights(QuantizedKind::as_stored, device.ctx().arena.source());
            RandomBlocks blocks(dtype, n, k, 7);
            const Operands w = operands(weights, blocks, n, k);
            const Tensor x = device.up(random_values(rows * k, 8), on.activations, {rows, k});
            const Epilogue then = {
                .bias = device.up(random_values(n, 10), Dtype::f32, {n}),
                .activation = Activation::gelu,
                .residual = device.up(random_values(rows * n, 9), on.activations, {rows, n})};
            const Tensor y = device.empty(on.activations, {rows, n});
            device.ctx().batch_invariant = false;
            linear(device.ctx(), y, x, w.quantized, then);
            const std::vector<float> found = device.down(y);
            device.ctx().batch_invariant = true;
            linear(device.ctx(), y, x, w.plain, then);
            const std::vector<float> expected = device.down(y);
            // Tiles round weights to f16, so errors are relative to the sums' terms.
            const auto [least, most] = std::minmax_element(expected.begin(), expected.end());
            expect_near(found, expected, on.tolerance, std::max(1.0f, std::max(-*least, *most)));
        }
}

// A norm before and caches after, as a decoder's block asks for them.
TEST_P(Quantized, NormAndAppendAreWhatTheyAreByThemselves) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype on = GetParam().activations;
    const int64_t k = 256;
    for (const Dtype dtype : kQuantizedDtypes)
        for (const int64_t rows : {1, 5}) {
            SCOPED_TRACE(concat(name_of(dtype), " rows ", rows));
            const Arena::Scope scope(device.ctx().arena);
            WeightStore weights(QuantizedKind::as_stored, device.ctx().arena.source());
            RandomBlocks blocks(dtype, 3 * k, k, 7);
            const Matrix w = weights.matrix({blocks.tensor()});
            const Tensor x = device.up(random_values(rows * k, 3), on, {rows, k});
            const Tensor bias = device.up(random_values(3 * k, 4), Dtype::f32, {3 * k});
            const auto run = [&](bool fused) {
                return normed_and_appended(device, x, w, bias, on, fused);
            };
            EXPECT_EQ(run(true), run(false));
        }
}

TEST_P(Quantized, NormAndGateAreWhatTheyAreByThemselves) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype on = GetParam().activations;
    for (const Dtype dtype : kQuantizedDtypes)
        for (const auto& [n, k] : {std::pair<int64_t, int64_t>{24, 256},
                                   {4200, 512},
                                   {2200, 2048},
                                   {40, 4096},
                                   {4864, 896}})
            for (const int64_t rows : {1, 5, 70}) {
                if (k % block_size(dtype).values != 0) continue;
                if (rows > 8 && on == Dtype::f32) continue;  // a GPU's tiles
                // Else a GPU has kernels of one row and of tiles.
                device.ctx().batch_invariant = rows == 5;
                SCOPED_TRACE(concat(name_of(dtype), " rows ", rows, " N ", n));
                const Arena::Scope scope(device.ctx().arena);
                WeightStore weights(QuantizedKind::as_stored, device.ctx().arena.source());
                RandomBlocks blocks(dtype, 2 * n, k, 7);
                const Matrix w = weights.matrix({blocks.tensor()});
                const Tensor x = device.up(random_values(rows * k, 3), on, {rows, k});
                const Tensor bias = device.up(random_values(2 * n, 4), Dtype::f32, {2 * n});
                const auto run = [&](bool fused) {
                    return normed_and_gated(device, x, w, bias, NormKind::rms, fused);
                };
                EXPECT_EQ(run(true), run(false));
            }
}

// Zeros stay zeros, a large value is what it is, and NaN gives NaN.
TEST(QuantizedProducts, RowsOfZerosAndOfOneLargeValue) {
    TestDevice device(kCpuCase);
    for (const Dtype dtype : kQuantizedDtypes) {
        const int64_t n = 5, k = 512;
        WeightStore weights;
        RandomBlocks blocks(dtype, n, k, 15);
        const Matrix w = weights.matrix({blocks.tensor()});
        std::vector<float> inputs(2 * k);
        inputs[k + 300] = -1e30f;
        const Tensor y = device.empty(Dtype::f32, {2, n});
        linear(device.ctx(), y, device.up(inputs, Dtype::f32, {2, k}), w);
        const std::vector<float> found = device.down(y), values = blocks.values();
        for (int64_t i = 0; i < n; ++i) {
            EXPECT_EQ(found[i], 0);
            const double expected = -1e30 * values[i * k + 300];
            EXPECT_NEAR(found[n + i], expected, 4e-6 * 1e30) << name_of(dtype);
        }
        for (const float value : {NAN, INFINITY, -INFINITY}) {
            inputs[k + 7] = value;
            linear(device.ctx(), y, device.up(inputs, Dtype::f32, {2, k}), w);
            const std::vector<float> none = device.down(y);
            for (int64_t i = 0; i < n; ++i) {
                EXPECT_EQ(none[i], 0);
                EXPECT_TRUE(std::isnan(none[n + i])) << name_of(dtype);
            }
        }
    }
}

// A row must not change with what is decoded next to it.
TEST_P(Quantized, RowsAreTheSameBitsWhateverIsBesideThem) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const DeviceCase& on = GetParam();
    const int64_t all_rows = on.device == Device::cpu ? 16 : 130, n = 75, k = 512;
    for (const Dtype dtype : kQuantizedDtypes) {
        const Arena::Scope scope(device.ctx().arena);
        WeightStore weights(QuantizedKind::as_stored, device.ctx().arena.source());
        RandomBlocks blocks(dtype, n, k, 11);
        const Matrix w = weights.matrix({blocks.tensor()});
        const Tensor x = device.up(random_values(all_rows * k, 12), on.activations, {all_rows, k});
        const Tensor all = device.empty(Dtype::f32, {all_rows, n});
        linear(device.ctx(), all, x, w);
        const std::vector<float> together = device.down(all);
        for (const int64_t count : {1, 3, 5, 13, 64}) {
            const Tensor some = device.empty(Dtype::f32, {all_rows, n});
            for (int64_t begin = 0; begin < all_rows; begin += count) {
                const int64_t end = std::min(begin + count, all_rows);
                linear(device.ctx(), some.slice(begin, end), x.slice(begin, end), w);
            }
            EXPECT_TRUE(device.down(some) == together) << name_of(dtype) << " by " << count;
        }
    }
}

TEST_P(Quantized, EmbeddingsAreThoseOfTheValues) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const DeviceCase& on = GetParam();
    const int64_t c = 512;
    const Tensor positions = device.up(random_values(2 * c, 13), Dtype::f32, {2, c});
    const Tensor tokens = device.up(std::vector<int32_t>{6, 0, 3});
    const Tensor places = device.up(std::vector<int32_t>{1, 0, 1});
    for (const Dtype dtype : kQuantizedDtypes) {
        WeightStore weights(QuantizedKind::as_stored, device.ctx().arena.source());
        RandomBlocks blocks(dtype, 7, c, 14);
        const Operands table = operands(weights, blocks, 7, c);
        const Tensor found = device.empty(on.activations, {3, c});
        const Tensor expected = device.empty(on.activations, {3, c});
        embedding(device.ctx(), found, tokens, places, table.quantized, positions);
        embedding(device.ctx(), expected, tokens, places, table.plain, positions);
        EXPECT_TRUE(device.down(found) == device.down(expected)) << name_of(dtype);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Quantized,
                         testing::Values(kCpuCase, kOneThreadCase, kCudaF16Case), name_of_case);

}  // namespace
}  // namespace hark::test
