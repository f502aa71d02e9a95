// Products of many rows with panels of quantised weights, where the processor has them.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/cpu/cpu.h"
#include "kernels/ops.h"
#include "kernels/quant/block_types.h"
#include "support/blocks.h"
#include "support/expect_products.h"
#include "support/ops.h"

namespace hark::test {
namespace {

// Rows of 16-bit activations; the first one reaches the largest sums there can be.
struct ShortRows {
    ShortRows(int64_t t, int64_t k, int64_t shared) {
        for (int64_t i = 0; i < t; ++i) {
            scales.push_back(0.5f / static_cast<float>(i + 1));
            for (int64_t j = 0; j < k; ++j) {
                const int64_t value = i == 0 ? 32767 : (i * 7919 + j * 104729) % 65535 - 32767;
                x.push_back(static_cast<int16_t>(value));
            }
        }
        for (auto from = x.begin(); from != x.end(); from += shared)
            sums.push_back(static_cast<float>(std::accumulate(from, from + shared, 0)));
    }
    // From row t on.
    IntegerInputs inputs(int64_t t = 0) const {
        const auto rows = std::ssize(scales);
        return {x.data() + t * std::ssize(x) / rows, scales.data() + t,
                sums.data() + t * std::ssize(sums) / rows};
    }

    std::vector<int16_t> x;
    std::vector<float> scales, sums;
};

class Panels : public testing::Test {
  protected:
    void SetUp() override {
        if (!panels_) GTEST_SKIP() << "this processor has no panels of quantised weights";
    }
    // (t, count)
    std::vector<float> products(const IntegerInputs& x, int64_t t, RandomBlocks& blocks,
                                Dtype dtype, int64_t k, int64_t count) {
        Context ctx;
        auto* scratch = ctx.arena.tensor(Dtype::u8, {kPanelBytes}).as<uint8_t>();
        std::vector<float> y(static_cast<size_t>(t * kPanelOutputs)), kept;
        panels_->products(y.data(), kPanelOutputs, x, t, blocks.bytes().data(), dtype, k, count,
                          scratch);
        for (int64_t i = 0; i < t; ++i)
            kept.insert(kept.end(), y.begin() + i * kPanelOutputs,
                        y.begin() + i * kPanelOutputs + count);
        return kept;
    }

    const PanelKernels* panels_ = cpu_kernels().panels;
};

// Every number of rows in a tile, of weights in a panel, and more columns than are unpacked at a
// time.
TEST_F(Panels, AgreeWithTheSumInDouble) {
    for (const Dtype dtype : kQuantizedDtypes)
        for (const int64_t k : {32, 96, 256, 352, 1024, 4096, 4352})
            for (const auto& [t, n] :
                 {std::pair<int64_t, int64_t>{1, 32}, {4, 1}, {7, 17}, {17, 31}}) {
                if (k % block_size(dtype).values != 0) continue;
                SCOPED_TRACE(concat(name_of(dtype), " K ", k, " T ", t, " N ", n));
                RandomBlocks blocks(dtype, n, k, 2);
                const ShortRows rows(t, k, values_that_share(dtype));
                const std::vector<float> y = products(rows.inputs(), t, blocks, dtype, k, n);
                const std::vector<float> w = blocks.values();
                expect_products(y, w, rows.x, rows.scales);
                // The bits of a row depend neither on the rows of its tile nor on their number.
                for (int64_t i = 0; i < t; ++i)
                    ASSERT_EQ(products(rows.inputs(i), 1, blocks, dtype, k, n),
                              std::vector<float>(y.begin() + i * n, y.begin() + (i + 1) * n));
            }
}

// Others widen the weights of many rows to float32.
TEST(ManyRows, OfProcessorsWithoutPanelsAreProductsOfTheValues) {
    const CpuKernels& best = cpu_kernels();
    for (const CpuKernels* kernels : all_cpu_kernels()) {
        if (kernels->panels) continue;
        use_cpu_kernels(*kernels);
        for (const Dtype dtype : kQuantizedDtypes) {
            const int64_t rows = 17, n = 37, k = 256;
            RandomBlocks blocks(dtype, n, k, 3);
            std::vector<float> x = random_values(rows * k, 4), w = blocks.values();
            std::vector<float> found(static_cast<size_t>(rows * n)), expected = found;
            Context ctx;
            const Tensor inputs = TestDevice::host(x, {rows, k});
            linear(ctx, TestDevice::host(found, {rows, n}), inputs, {blocks.tensor()});
            linear(ctx, TestDevice::host(expected, {rows, n}), inputs,
                   {TestDevice::host(w, {n, k})});
            EXPECT_EQ(found, expected) << kernels->name << " " << name_of(dtype);
        }
    }
    use_cpu_kernels(best);
}

// Few panels and many, rows that are cut into pieces.
TEST_F(Panels, TheNumberOfThreadsChangesNoBit) {
    for (const Dtype dtype : {Dtype::q8_0, Dtype::q5_0, Dtype::q4_k, Dtype::q6_k})
        for (const int64_t rows : {17, 33, 256, 700})
            for (const int64_t n : {5, 37, 129}) {
                SCOPED_TRACE(concat(name_of(dtype), " T ", rows, " N ", n));
                const int64_t k = 256;
                RandomBlocks blocks(dtype, n, k, 3);
                std::vector<float> x = random_values(rows * k, 4), bias = random_values(n, 5);
                const std::vector<float> before = random_values(rows * n, 6);
                const auto run = [&](int threads, bool in_place) {
                    Context ctx;
                    ctx.threads = threads;
                    std::vector<float> y = before, residual = before;
                    const Tensor to = TestDevice::host(y, {rows, n});
                    const Epilogue then = {
                        .bias = TestDevice::host(bias, {n}),
                        .activation = Activation::gelu,
                        .residual = in_place ? to : TestDevice::host(residual, {rows, n})};
                    linear(ctx, to, TestDevice::host(x, {rows, k}), {blocks.tensor()}, then);
                    return y;
                };
                const std::vector<float> one = run(1, false);
                for (const int threads : {1, 2, 3, 16}) EXPECT_EQ(run(threads, true), one);
            }
}

}  // namespace
}  // namespace hark::test
