// Products of many rows in bf16 parts, where the processor has them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/cpu.h"
#include "support/blocks.h"
#include "support/ops.h"

namespace hark::test {
namespace {

// Weights (n, k) as they are stored, and as floats.
struct Weights {
    Weights(Dtype dtype, int64_t n, int64_t k)
        : rows{nullptr, dtype, k}, blocks(Dtype::q8_0, 1, 32, 1) {
        if (is_quantized(dtype)) {
            blocks = RandomBlocks(dtype, n, k, 2);
            rows.values = blocks.bytes().data();
            values = blocks.values();
            return;
        }
        values = TestDevice::rounded(random_values(n * k, 2), dtype);
        rows.values = device.up(values, dtype, {n, k}).data;
    }

    TestDevice device{kCpuCase};
    StoredRows rows;
    RandomBlocks blocks;
    std::vector<float> values;
};

class Splits : public testing::Test {
  protected:
    void SetUp() override {
        if (!splits_) GTEST_SKIP() << "this processor has no products of bf16 parts";
    }
    // Rows [first, first + t) of x times all weights: (t, n).
    std::vector<float> products(const std::vector<float>& x, int64_t first, int64_t t,
                                const Weights& w, int64_t n) {
        Context ctx;
        const int64_t k = w.rows.size, pieces = (t + kSplitRows - 1) / kSplitRows;
        const int64_t bytes = splits_->arranged_bytes(k, w.rows.dtype);
        const auto take = [&](int64_t size) {
            return static_cast<std::byte*>(ctx.arena.tensor(Dtype::u8, {size}).data);
        };
        std::byte *arranged = take(pieces * bytes),
                  *scratch = take(splits_->scratch_bytes(w.rows.dtype));
        for (int64_t i = 0; i < pieces; ++i)
            splits_->arrange(arranged + i * bytes, x.data() + (first + i * kSplitRows) * k,
                             std::min(kSplitRows, t - i * kSplitRows), k, w.rows.dtype);
        std::vector<float> y(static_cast<size_t>(t * kSplitOutputs)), kept;
        splits_->products(y.data(), kSplitOutputs, arranged, t, w.rows, n, scratch);
        for (int64_t i = 0; i < t; ++i)
            kept.insert(kept.end(), y.begin() + i * kSplitOutputs,
                        y.begin() + i * kSplitOutputs + n);
        return kept;
    }

    const SplitKernels* splits_ = cpu_kernels().splits;
};

// Of the sum of magnitudes: chains of f32, and what a type's parts leave out.
double tolerance(Dtype dtype) { return is_quantized(dtype) ? 0x1p-16 : 0x1p-21; }

TEST_F(Splits, AgreeWithTheSumInDouble) {
    std::vector<Dtype> types(std::begin(kQuantizedDtypes), std::end(kQuantizedDtypes));
    types.insert(types.end(), {Dtype::f32, Dtype::f16, Dtype::bf16});
    for (const Dtype dtype : types)
        for (const int64_t k : {1, 7, 32, 40, 256, 1024, 1280, 2100})
            for (const auto& [t, n] :
                 {std::pair<int64_t, int64_t>{1, 128}, {16, 1}, {17, 33}, {50, 96}}) {
                if (is_quantized(dtype) && k % block_size(dtype).values != 0) continue;
                SCOPED_TRACE(concat(name_of(dtype), " K ", k, " T ", t, " N ", n));
                const Weights w(dtype, n, k);
                const std::vector<float> x = random_values(t * k, 3);
                const std::vector<float> y = products(x, 0, t, w, n);
                for (int64_t i = 0; i < t; ++i)
                    for (int64_t j = 0; j < n; ++j) {
                        double sum = 0, size = 0;
                        for (int64_t d = 0; d < k; ++d) {
                            const double one =
                                static_cast<double>(x[i * k + d]) * w.values[j * k + d];
                            sum += one;
                            size += std::abs(one);
                        }
                        ASSERT_NEAR(y[i * n + j], sum, tolerance(dtype) * size) << i << " " << j;
                    }
                // The bits of a row depend neither on the other rows nor on their number.
                for (const int64_t i : {int64_t{0}, t / 2, t - 1})
                    ASSERT_EQ(products(x, i, 1, w, n),
                              std::vector<float>(y.begin() + i * n, y.begin() + (i + 1) * n));
            }
}

// Infinity becomes NaN, since its parts are infinity and NaN.
TEST_F(Splits, OfWhatIsNotFiniteAreNotFinite) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::q8_0})
        for (const float value :
             {std::numeric_limits<float>::infinity(), NAN, std::bit_cast<float>(0xffffffffu)}) {
            const int64_t t = 3, n = 5, k = 64;
            const Weights w(dtype, n, k);
            std::vector<float> x = random_values(t * k, 3);
            x[k + 40] = value;
            const std::vector<float> y = products(x, 0, t, w, n);
            for (int64_t i = 0; i < t * n; ++i)
                EXPECT_EQ(std::isfinite(y[i]), i / n != 1) << name_of(dtype) << " " << i;
        }
}

// Rows that are cut into pieces, and few outputs.
TEST_F(Splits, TheNumberOfThreadsChangesNoBit) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::q4_k})
        for (const int64_t rows : {65, 256, 700})
            for (const int64_t n : {5, 37, 160}) {
                SCOPED_TRACE(concat(name_of(dtype), " T ", rows, " N ", n));
                const int64_t k = 256;
                Weights w(dtype, n, k);
                std::vector<float> x = random_values(rows * k, 4);
                const Matrix matrix = {
                    Tensor(const_cast<void*>(w.rows.values), dtype, {n, k}), {}, true};
                const auto run = [&](int threads) {
                    Context ctx;
                    ctx.threads = threads;
                    std::vector<float> y(static_cast<size_t>(rows * n));
                    linear(ctx, TestDevice::host(y, {rows, n}), TestDevice::host(x, {rows, k}),
                           matrix);
                    return y;
                };
                const std::vector<float> one = run(1);
                for (const int threads : {2, 3, 16}) EXPECT_EQ(run(threads), one);
            }
}

}  // namespace
}  // namespace hark::test
