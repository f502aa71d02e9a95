// Products of 33 to 128 rows, and gate and up of more, where rows may depend on their number: on
// Hopper kernels of their own.
#include <gtest/gtest.h>

#include <cmath>

#include "linear_case.h"

namespace hark::test {
namespace {

class MediumRows : public testing::TestWithParam<DeviceCase> {};

struct MediumCase {
    int64_t rows, n, k;
    Activation activation;
    bool gated, biased;
    Dtype y_type;
};

double value_of(double x, Activation activation) {
    return activation == Activation::silu ? x / (1 + std::exp(-x))
                                          : LinearInputs::activated(x, activation);
}

// Compares every 97th output of a row, others of the next one, with sums in double.
void check_medium(TestDevice& device, const DeviceCase& on, const LinearInputs& in, const Matrix& w,
                  const MediumCase& of) {
    SCOPED_TRACE(concat("rows ", of.rows, " gated ", of.gated, " biased ", of.biased, " y ",
                        name_of(of.y_type), " activation ", static_cast<int>(of.activation)));
    const Arena::Scope scope(device.ctx().arena);
    const Tensor x = device.up(in.x, on.activations, {in.shape.t, of.k}).slice(0, of.rows);
    const int64_t n = of.gated ? of.n / 2 : of.n;
    const Tensor y = device.empty(of.y_type, {of.rows, n});
    Epilogue then{.activation = of.activation};
    if (of.biased) then.bias = device.up(in.bias, Dtype::f32, {of.n});
    linear(device.ctx(), y, x, w, then, {.gated = of.gated});
    const std::vector<float> found = device.down(y);
    const auto sum = [&](int64_t t, int64_t output) {
        double total = of.biased ? in.bias[output] : 0;
        const double scale = in.scales.empty() ? 1 : in.scales[output];
        for (int64_t i = 0; i < of.k; ++i)
            total += double{in.x[t * of.k + i]} * in.w[output * of.k + i] * scale;
        return total;
    };
    // Gate and up are rounded to y's type.
    const double tolerance = of.y_type == Dtype::f32 ? 1e-5
                             : of.gated              ? 3 * on.tolerance
                                                     : on.tolerance;
    for (int64_t t = 0; t < of.rows; ++t)
        for (int64_t i = (n - 1 + t) % 97; i < n; i += 97) {
            double expected = value_of(sum(t, i), of.activation);
            if (of.gated) expected *= sum(t, n + i);
            ASSERT_NEAR(found[t * n + i], expected, tolerance * (1 + std::abs(expected)))
                << "row " << t << " output " << i;
        }
}

TEST_P(MediumRows, OfManyOutputsAgreeWithTheSumInDouble) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    device.ctx().batch_invariant = false;
    const Dtype type = GetParam().activations;
    // Neither whole tiles of outputs nor whole steps of columns.
    constexpr int64_t kOutputs = 16400, kColumns = 2056;
    const LinearInputs in({128, kOutputs, kColumns}, type, type, 11);
    const Matrix w = in.up(device, type);
    for (const int64_t rows : {33, 64, 65, 128})
        for (const bool biased : {false, true}) {
            const auto check = [&](Activation activation, bool gated, Dtype y_type) {
                check_medium(device, GetParam(), in, w,
                             {rows, kOutputs, kColumns, activation, gated, biased, y_type});
            };
            check(Activation::silu, true, type);
            check(Activation::gelu_tanh, true, type);
            check(Activation::none, false, Dtype::f32);
            check(Activation::gelu, false, type);
        }
}

// Shares of the blocks that begin and end within tiles.
TEST_P(MediumRows, OfE4m3AgreeWithTheSumInDouble) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    device.ctx().batch_invariant = false;
    const Dtype type = GetParam().activations;
    for (const auto& [outputs, columns] : {std::pair<int64_t, int64_t>{400, 16}, {4112, 2064}}) {
        const LinearInputs in({128, outputs, columns}, type, Dtype::fp8, 11);
        const Matrix w = in.up(device, Dtype::fp8);
        for (const int64_t rows : {33, 64, 65, 128})
            for (const bool biased : {false, true})
                for (const Activation activation : {Activation::silu, Activation::gelu_tanh})
                    check_medium(device, GetParam(), in, w,
                                 {rows, outputs, columns, activation, true, biased, type});
    }
}

// Outputs for which tiles are wide: whole ones and such that end beyond the rows, the outputs or
// the columns; and more of them than the multiprocessors compute at once.
TEST_P(MediumRows, GateAndUpOfWideTilesAgreeWithTheSumInDouble) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    device.ctx().batch_invariant = false;
    const Dtype type = GetParam().activations;
    constexpr int64_t kColumns = 2064;
    for (const int64_t n : {11208, 26040}) {
        const LinearInputs in({256, 2 * n, kColumns}, type, type, 11);
        const Matrix w = in.up(device, type);
        for (const int64_t rows : {64, 65, 128, 192, 250, 256})
            for (const Activation activation : {Activation::silu, Activation::gelu_tanh})
                check_medium(device, GetParam(), in, w,
                             {rows, 2 * n, kColumns, activation, true, false, type});
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, MediumRows, testing::Values(kCudaF16Case, kCudaBf16Case),
                         name_of_case);

}  // namespace
}  // namespace hark::test
