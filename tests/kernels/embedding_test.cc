#include "kernels/ops.h"
#include "nn/weights.h"
#include "support/ops.h"

namespace hark::test {
namespace {

class Embedding : public testing::TestWithParam<DeviceCase> {};
class AddPositions : public testing::TestWithParam<DeviceCase> {};
class SelectRows : public testing::TestWithParam<DeviceCase> {};

TEST_P(Embedding, IsTheRowPlusThePosition) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const int64_t columns : {5, 11, 51, 384, 1280}) {
        std::vector<float> stored = random_values(7 * columns, 1);
        const std::vector<float> places = random_values(5 * columns, 2);
        Tensor positions = device.up(places, Dtype::f32, {5, columns});
        const std::vector<int32_t> tokens = {6, 0, 3, 3, 1}, position = {0, 4, 1, 2, 4};
        for (const auto& [precision, tolerance] :
             {std::pair{WeightPrecision::f32, 1e-7}, std::pair{WeightPrecision::f16, 1e-3},
              std::pair{WeightPrecision::bf16, 8e-3}, std::pair{WeightPrecision::int8, 2e-2},
              std::pair{WeightPrecision::fp8, 0.13}}) {
            WeightStore weights(precision, device.ctx().arena.source());
            const Matrix table = weights.matrix({TestDevice::host(stored, {7, columns})});
            Tensor y = device.empty(GetParam().activations, {5, columns});
            embedding(device.ctx(), y, device.up(tokens), device.up(position), table, positions);
            std::vector<float> expected;
            for (size_t t = 0; t < tokens.size(); ++t)
                for (int64_t c = 0; c < columns; ++c)
                    expected.push_back(stored[tokens[t] * columns + c] +
                                       places[position[t] * columns + c]);
            const bool exact = GetParam().activations == Dtype::f32;
            expect_near(device.down(y), expected,
                        exact ? tolerance : std::max(tolerance, GetParam().tolerance));
        }
    }
}

// The CPU sees them and says so; a GPU's kernels leave NaN.
TEST_P(Embedding, IdsOutsideTheTablesAreSeen) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const std::vector<float> stored = TestDevice::rounded(random_values(21, 1), Dtype::bf16);
    const Matrix table = {device.up(stored, Dtype::f32, {7, 3}), {}};
    Tensor positions = device.up(std::vector<float>(15, 0), Dtype::f32, {5, 3});
    Tensor y = device.empty(GetParam().activations, {2, 3});
    const auto call = [&](int32_t token, int32_t position) {
        embedding(device.ctx(), y, device.up(std::vector<int32_t>{6, token}),
                  device.up(std::vector<int32_t>{4, position}), table, positions);
    };
    call(6, 4);
    const std::vector<float> last(stored.end() - 3, stored.end());
    for (const auto& [token, position] :
         {std::pair{7, 0}, std::pair{-1, 0}, std::pair{0, 5}, std::pair{0, -1}}) {
        if (!device.ctx().on_cuda()) {
            EXPECT_THROW(call(token, position), Error);
            continue;
        }
        call(token, position);
        const std::vector<float> found = device.down(y);
        EXPECT_EQ(std::vector<float>(found.begin(), found.begin() + 3), last);
        for (size_t c = 3; c < 6; ++c) EXPECT_TRUE(std::isnan(found[c])) << token << " " << c;
    }
}

TEST_P(Embedding, WrongShapesAreErrors) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    Tensor ids = device.up(std::vector<int32_t>{0, 1}), y = device.empty(dtype, {2, 3});
    Tensor table = device.empty(Dtype::f32, {7, 3}), positions = device.empty(Dtype::f32, {5, 3});
    Context& ctx = device.ctx();
    EXPECT_THROW(embedding(ctx, device.empty(dtype, {3, 3}), ids, ids, {table, {}}, positions),
                 Error);
    EXPECT_THROW(embedding(ctx, device.empty(Dtype::i32, {2, 3}), ids, ids, {table, {}}, positions),
                 Error);
    EXPECT_THROW(embedding(ctx, y, ids, ids.slice(0, 1), {table, {}}, positions), Error);
    EXPECT_THROW(embedding(ctx, y, ids, ids, {device.empty(Dtype::i8, {7, 3}), {}}, positions),
                 Error);
    EXPECT_THROW(embedding(ctx, y, ids, ids, {table, {}}, device.empty(Dtype::f16, {5, 3})), Error);
}

TEST_P(AddPositions, ToEverySequence) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    for (const int64_t columns : {5, 9, 384, 1280}) {
        const std::vector<float> x = TestDevice::rounded(random_values(6 * columns, 1), dtype);
        const std::vector<float> places = random_values(3 * columns, 2);
        Tensor sum = device.up(x, dtype, {2, 3, columns});
        add_positions(device.ctx(), sum, device.up(places, Dtype::f32, {3, columns}));
        std::vector<float> expected;
        for (size_t i = 0; i < x.size(); ++i) expected.push_back(x[i] + places[i % places.size()]);
        EXPECT_EQ(device.down(sum), TestDevice::rounded(expected, dtype));
        Tensor short_table = device.empty(Dtype::f32, {2, columns});
        EXPECT_THROW(add_positions(device.ctx(), sum, short_table), Error);
        Tensor narrow_table = device.empty(Dtype::f32, {3, columns - 1});
        EXPECT_THROW(add_positions(device.ctx(), sum, narrow_table), Error);
    }
}

TEST_P(SelectRows, InAnyOrder) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    for (const int64_t columns : {2, 51, 384, 1280}) {
        const std::vector<float> values = TestDevice::rounded(random_values(3 * columns, 1), dtype);
        Tensor x = device.up(values, dtype, {3, columns}), y = device.empty(dtype, {4, columns});
        const std::vector<int32_t> rows = {2, 0, 0, 1};
        select_rows(device.ctx(), y, x, device.up(rows));
        std::vector<float> expected;
        for (const int32_t row : rows)
            expected.insert(expected.end(), values.begin() + row * columns,
                            values.begin() + (row + 1) * columns);
        EXPECT_EQ(device.down(y), expected);
        EXPECT_THROW(select_rows(device.ctx(), y, x, device.up(std::vector<int32_t>{0, 0})), Error);
        const Tensor outside = device.up(std::vector<int32_t>{1, 0, 3, -1});
        if (!device.ctx().on_cuda()) {
            EXPECT_THROW(select_rows(device.ctx(), y, x, outside), Error);
            continue;
        }
        select_rows(device.ctx(), y, x, outside);
        const std::vector<float> found = device.down(y);
        EXPECT_EQ(found[0], values[columns]);
        for (int64_t i = 2 * columns; i < 4 * columns; ++i) EXPECT_TRUE(std::isnan(found[i])) << i;
    }
}

// The logits' rows are taken in f32 from what is 16 bits wide.
TEST(SelectRowsOnCuda, ConvertsOnTheWay) {
    TestDevice device(kCudaF16Case);
    if (!device) GTEST_SKIP() << device.why_not();
    for (const int64_t columns : {3, 8}) {
        const std::vector<float> values =
            TestDevice::rounded(random_values(2 * columns, 1), Dtype::f16);
        Tensor y = device.empty(Dtype::f32, {1, columns});
        select_rows(device.ctx(), y, device.up(values, Dtype::f16, {2, columns}),
                    device.up(std::vector<int32_t>{1}));
        EXPECT_EQ(device.down(y), std::vector<float>(values.begin() + columns, values.end()));
    }
}

const DeviceCase kEmbeddingCases[] = {kCpuCase, kCudaF32Case, kCudaF16Case, kCudaBf16Case};
INSTANTIATE_TEST_SUITE_P(Devices, Embedding, testing::ValuesIn(kEmbeddingCases), name_of_case);
INSTANTIATE_TEST_SUITE_P(Training, Embedding, testing::Values(kCpuBf16Case), name_of_case);
INSTANTIATE_TEST_SUITE_P(Devices, AddPositions, testing::ValuesIn(kEmbeddingCases), name_of_case);
INSTANTIATE_TEST_SUITE_P(Devices, SelectRows, testing::ValuesIn(kEmbeddingCases), name_of_case);

}  // namespace
}  // namespace hark::test
