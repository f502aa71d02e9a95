// Products of one x, some of which are stacked.
#include "nn/blocks.h"
#include "support/ops.h"

namespace hark::test {
namespace {

// Rows of weights and their biases, from a number on.
struct Rows {
    std::vector<float> weights, bias;

    Rows(int64_t first, int64_t n, int64_t k) {
        for (int64_t i = first * k; i < (first + n) * k; ++i)
            weights.push_back(static_cast<float>(i * 7 % 11) - 5);
        for (int64_t i = first; i < first + n; ++i) bias.push_back(static_cast<float>(i));
    }
    Linear linear() {
        const auto n = std::ssize(bias), k = std::ssize(weights) / n;
        return {Matrix{TestDevice::host(weights, {n, k})}, TestDevice::host(bias, {n})};
    }
};

TEST(LinearGroup, SomePartsAreStackedAndOthersNot) {
    TestDevice device(kCpuCase);
    const int64_t k = 16;
    std::vector<float> inputs = random_values(3 * k, 1);
    const Tensor x = TestDevice::host(inputs, {3, k});
    Rows all(0, 14, k), queries_and_keys(0, 10, k), values(10, 4, k);
    const LinearGroup one(all.linear(), {6, 4, 4});
    EXPECT_TRUE(one.is_stacked());
    LinearGroup two;
    two.add(queries_and_keys.linear(), {6, 4});
    two.add(values.linear(), {4});
    EXPECT_FALSE(two.is_stacked());
    const auto expected = one(device.ctx(), x, {}), found = two(device.ctx(), x, {});
    ASSERT_EQ(found.size(), 3u);
    const int64_t widths[] = {6, 4, 4};
    for (size_t part = 0; part < 3; ++part)
        for (int64_t row = 0; row < 3; ++row)
            for (int64_t i = 0; i < widths[part]; ++i) {
                const auto at = [&](const Columns& of) {
                    return of.rows.as<float>()[row * of.rows.dim(1) + of.first + i];
                };
                EXPECT_NEAR(at(found[part]), at(expected[part]), 1e-5) << part << ' ' << i;
            }
}

TEST(LinearGroup, PartsOfAnotherNumberOfRowsAreRefused) {
    Rows rows(0, 10, 16);
    LinearGroup group;
    EXPECT_THROW(group.add(rows.linear(), {6, 3}), Error);
}

}  // namespace
}  // namespace hark::test
