#include "kernels/ops.h"
#include "kernels/weights.h"
#include "support/ops.h"

namespace hark::test {
namespace {

TEST(Embedding, IsTheRowPlusThePosition) {
    TestDevice device(kCpuCase);
    const std::vector<float> stored = random_values(7 * 11, 1), places = random_values(5 * 11, 2);
    Tensor table = device.up(stored, Dtype::f32, {7, 11});
    Tensor positions = device.up(places, Dtype::f32, {5, 11});
    const std::vector<int32_t> tokens = {6, 0, 3, 3}, position = {0, 4, 1, 2};
    for (const auto& [precision, tolerance] :
         {std::pair{Precision::Weights::f32, 1e-7}, std::pair{Precision::Weights::f16, 1e-3},
          std::pair{Precision::Weights::bf16, 8e-3}, std::pair{Precision::Weights::int8, 2e-2}}) {
        Weights weights(precision);
        Tensor y = device.empty(Dtype::f32, {4, 11});
        embedding(device.ctx(), y, device.up(tokens), device.up(position), weights.matrix({table}),
                  positions);
        std::vector<float> expected;
        for (size_t t = 0; t < 4; ++t)
            for (size_t c = 0; c < 11; ++c)
                expected.push_back(stored[tokens[t] * 11 + c] + places[position[t] * 11 + c]);
        expect_near(device.down(y), expected, tolerance);
    }
}

TEST(Embedding, IdsOutsideTheTablesAreErrors) {
    TestDevice device(kCpuCase);
    const Matrix table = {device.up(random_values(21, 1), Dtype::f32, {7, 3}), {}};
    Tensor positions = device.up(random_values(15, 1), Dtype::f32, {5, 3});
    Tensor y = device.empty(Dtype::f32, {1, 3});
    const auto call = [&](int32_t token, int32_t position) {
        embedding(device.ctx(), y, device.up(std::vector<int32_t>{token}),
                  device.up(std::vector<int32_t>{position}), table, positions);
    };
    call(6, 4);
    EXPECT_THROW(call(7, 0), Error);
    EXPECT_THROW(call(-1, 0), Error);
    EXPECT_THROW(call(0, 5), Error);
    EXPECT_THROW(call(0, -1), Error);
}

TEST(AddPositions, ToEverySequence) {
    TestDevice device(kCpuCase);
    const std::vector<float> x = random_values(2 * 3 * 9, 1), places = random_values(3 * 9, 2);
    Tensor sum = device.up(x, Dtype::f32, {2, 3, 9});
    add_positions(device.ctx(), sum, device.up(places, Dtype::f32, {3, 9}));
    std::vector<float> expected;
    for (size_t i = 0; i < x.size(); ++i) expected.push_back(x[i] + places[i % 27]);
    EXPECT_EQ(device.down(sum), expected);
    EXPECT_THROW(add_positions(device.ctx(), sum, device.empty(Dtype::f32, {2, 9})), Error);
    EXPECT_THROW(add_positions(device.ctx(), sum, device.empty(Dtype::f32, {3, 8})), Error);
}

TEST(SelectRows, InAnyOrder) {
    TestDevice device(kCpuCase);
    Tensor x = device.up({0, 1, 10, 11, 20, 21}, Dtype::f32, {3, 2});
    Tensor y = device.empty(Dtype::f32, {4, 2});
    select_rows(device.ctx(), y, x, device.up(std::vector<int32_t>{2, 0, 0, 1}));
    EXPECT_EQ(device.down(y), (std::vector<float>{20, 21, 0, 1, 0, 1, 10, 11}));
    EXPECT_THROW(select_rows(device.ctx(), y, x, device.up(std::vector<int32_t>{0, 0, 0, 3})),
                 Error);
    EXPECT_THROW(select_rows(device.ctx(), y, x, device.up(std::vector<int32_t>{0, 0})), Error);
}

}  // namespace
}  // namespace hark::test
