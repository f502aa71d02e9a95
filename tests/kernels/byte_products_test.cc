// Products of quantised weights with both bytes of 16-bit activations, where the processor has
// them.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/cpu.h"
#include "support/blocks.h"
#include "support/expect_products.h"

namespace hark::test {
namespace {

struct Rows {
    Rows(int64_t t, int64_t k)
        : x(t * k), high(t * k), low(t * k), offsets(t * k / 4), sums(t * k / 32) {
        for (int64_t i = 0; i < t; ++i) {
            scales.push_back(0.5f / static_cast<float>(i + 1));
            for (int64_t j = 0; j < k; ++j) {
                // The first row reaches the largest sums there can be.
                constexpr int64_t kRange = 2 * kWideRange + 1;
                const int64_t value =
                    i == 0 ? kWideRange : (i * 7919 + j * 104729) % kRange - kWideRange;
                x[static_cast<size_t>(i * k + j)] = static_cast<int16_t>(value);
            }
        }
    }
    ByteInputs inputs() {
        return {high.data(), low.data(), offsets.data(), sums.data(), scales.data()};
    }

    std::vector<int16_t> x;
    std::vector<int8_t> high, low;
    std::vector<int32_t> offsets;
    std::vector<float> sums, scales;
};

TEST(ByteProducts, AgreeWithTheSumInDouble) {
    constexpr int64_t n = 5;
    const ByteKernels* bytes = cpu_kernels().bytes;
    if (!bytes) GTEST_SKIP() << "this processor has no products of bytes";
    for (const Dtype dtype : kQuantizedDtypes)
        for (const int64_t k : {64, 256, 832, 1024})
            for (const int64_t t : {1, 2, 3, 4, 7}) {
                if (!bytes->has(dtype, k) || k % block_size(dtype).values != 0) continue;
                RandomBlocks blocks(dtype, n, k, 2);
                Rows rows(t, k);
                for (int64_t i = 0; i < t; ++i)
                    bytes->split(rows.inputs(), i, rows.x.data() + i * k, dtype, k);
                std::vector<float> y(static_cast<size_t>(t * n)), alone(n);
                bytes->products(y.data(), n, rows.inputs(), t, blocks.bytes().data(), dtype, k, n);
                const std::vector<float> w = blocks.values();
                SCOPED_TRACE(concat(name_of(dtype), " K ", k, " T ", t));
                expect_products(y, w, rows.x, rows.scales);
                // A row's bits do not depend on the rows beside it.
                ByteInputs last = rows.inputs();
                last.high += (t - 1) * k;
                last.low += (t - 1) * k;
                last.offsets += (t - 1) * k / 4;
                last.sums += (t - 1) * k / 32;
                last.scales += t - 1;
                bytes->products(alone.data(), n, last, 1, blocks.bytes().data(), dtype, k, n);
                EXPECT_EQ(alone, std::vector<float>(y.end() - n, y.end()));
            }
}

}  // namespace
}  // namespace hark::test
