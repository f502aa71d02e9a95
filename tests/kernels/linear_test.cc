#include "kernels/ops.h"

#include <algorithm>

#include "kernels/linear_case.h"
#include "support/normed_and_appended.h"
#include "support/ops.h"

namespace hark::test {
namespace {

class LinearOp : public testing::TestWithParam<DeviceCase> {};

// Runs one product and compares it with the sum in double.
void check_product(TestDevice& device, const DeviceCase& on, const WeightCase& weights,
                   LinearShape shape, Activation activation, bool with_bias, int residual) {
    SCOPED_TRACE(concat(name_of(weights.dtype), " T ", shape.t, " N ", shape.n, " K ", shape.k,
                        " activation ", static_cast<int>(activation), " bias ", with_bias,
                        " residual ", residual));
    const Arena::Scope scope(device.ctx().arena);
    const LinearInputs in(shape, on.activations, weights.dtype,
                          11 + shape.t + 5 * shape.n + 3 * shape.k);
    const Matrix w = in.up(device, weights.dtype);
    Tensor x = device.up(in.x, on.activations, {shape.t, shape.k});
    Tensor y = device.up(in.residual, on.activations, {shape.t, shape.n});
    Epilogue then = {.activation = activation};
    if (with_bias) then.bias = device.up(in.bias, Dtype::f32, {shape.n});
    if (residual == 1) then.residual = device.up(in.residual, on.activations, {shape.t, shape.n});
    if (residual == 2) then.residual = y;
    linear(device.ctx(), y, x, w, then);
    std::vector<double> size;
    const std::vector<double> expected = in.expected(then, size);
    const std::vector<float> found = device.down(y);
    const double own = on.device == Device::cpu
                           ? (shape.t > 16 ? weights.many_rows : weights.few_rows)
                           : on.tolerance;
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], expected[i],
                    own * size[i] + on.tolerance * std::abs(expected[i]) + 1e-6)
            << "value " << i;
}

TEST_P(LinearOp, AgreesWithTheSumInDouble) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    constexpr LinearShape kShapes[] = {{1, 1, 1},    {1, 33, 7},   {2, 5, 100},  {3, 100, 31},
                                       {5, 16, 64},  {8, 17, 65},  {16, 33, 96}, {17, 40, 48},
                                       {50, 1, 130}, {33, 67, 15}, {1, 200, 384}};
    for (const WeightCase& weights : kWeights)
        for (const LinearShape& shape : kShapes)
            check_product(device, GetParam(), weights, shape, Activation::none, true, 0);
}

TEST_P(LinearOp, FusesEveryEpilogue) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const WeightCase& weights : kWeights)
        for (const LinearShape& shape : {LinearShape{3, 35, 40}, LinearShape{20, 35, 40}})
            for (const Activation activation :
                 {Activation::none, Activation::gelu, Activation::gelu_tanh})
                for (const bool bias : {false, true})
                    for (const int residual : {0, 1, 2})
                        check_product(device, GetParam(), weights, shape, activation, bias,
                                      residual);
}

TEST_P(LinearOp, NormAndAppendAreWhatTheyAreByThemselves) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const WeightCase& weights : kWeights)
        for (const int64_t k : {96, 384, 1376}) {
            const Arena::Scope scope(device.ctx().arena);
            constexpr int64_t kMostRows = 40;
            const LinearInputs in({kMostRows, 3 * k, k}, GetParam().activations, weights.dtype, 7);
            const Matrix w = in.up(device, weights.dtype);
            const Tensor x = device.up(in.x, GetParam().activations, {kMostRows, k});
            const Tensor bias = device.up(in.bias, Dtype::f32, {3 * k});
            for (const int64_t rows : {1, 2, 20, 40})
                for (const Dtype cache : {Dtype::f16, Dtype::f32}) {
                    SCOPED_TRACE(concat(name_of(weights.dtype), " rows ", rows, " K ", k));
                    const auto run = [&](bool fused) {
                        return normed_and_appended(device, x.slice(0, rows), w, bias, cache, fused);
                    };
                    EXPECT_EQ(run(true), run(false));
                }
        }
}

TEST_P(LinearOp, NormAndGateAreWhatTheyAreByThemselves) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const WeightCase& weights : kWeights)
        for (const auto& [n, k] :
             {std::pair<int64_t, int64_t>{24, 96}, {2200, 384}, {8200, 1376}, {8200, 1408}}) {
            if (n > 8000 && !device.ctx().on_cuda()) continue;  // a GPU gates that many itself
            const Arena::Scope scope(device.ctx().arena);
            constexpr int64_t kMostRows = 70;  // a CPU's panels, in bf16 parts with AMX
            const LinearInputs in({kMostRows, 2 * n, k}, GetParam().activations, weights.dtype, 3);
            const Matrix w = in.up(device, weights.dtype);
            const Tensor x = device.up(in.x, GetParam().activations, {kMostRows, k});
            const Tensor bias = device.up(in.bias, Dtype::f32, {2 * n});
            for (const int64_t rows : {1, 3, 20, 70})
                for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
                    SCOPED_TRACE(concat(name_of(weights.dtype), " rows ", rows, " K ", k));
                    const auto run = [&](bool fused) {
                        return normed_and_gated(device, x.slice(0, rows), w, bias, kind, fused);
                    };
                    EXPECT_EQ(run(true), run(false));
                }
        }
}

TEST_P(LinearOp, AGatedProductNeedsAnActivationAndTwoHalves) {
    TestDevice device(kCpuCase);
    const Matrix w{device.up(random_values(4 * 8, 1), Dtype::f32, {4, 8})};
    const Tensor x = device.up(random_values(8, 2), Dtype::f32, {1, 8});
    const Tensor y = device.empty(Dtype::f32, {1, 2}), wide = device.empty(Dtype::f32, {1, 4});
    const Epilogue silu{.activation = Activation::silu};
    linear(device.ctx(), y, x, w, silu, {.gated = true});
    EXPECT_THROW(linear(device.ctx(), y, x, w, {}, {.gated = true}), Error);
    EXPECT_THROW(linear(device.ctx(), wide, x, w, silu, {.gated = true}), Error);
    Epilogue with_residual = silu;
    with_residual.residual = y;
    EXPECT_THROW(linear(device.ctx(), y, x, w, with_residual, {.gated = true}), Error);
    const Matrix odd{device.up(random_values(3 * 8, 1), Dtype::f32, {3, 8})};
    EXPECT_THROW(
        linear(device.ctx(), device.empty(Dtype::f32, {1, 1}), x, odd, silu, {.gated = true}),
        Error);
}

TEST_P(LinearOp, ZeroRowsGiveNothing) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const LinearInputs in({1, 4, 8}, GetParam().activations, Dtype::f16, 5);
    const Matrix w = in.up(device, Dtype::f16);
    Tensor y = device.empty(GetParam().activations, {0, 4});
    linear(device.ctx(), y, device.empty(GetParam().activations, {0, 8}), w);
    EXPECT_TRUE(device.down(y).empty());
}

TEST_P(LinearOp, WrongShapesAreErrors) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    const LinearInputs in({4, 6, 8}, dtype, Dtype::f32, 5);
    const Matrix w = in.up(device, Dtype::f32);
    Tensor x = device.up(in.x, dtype, {4, 8}), y = device.empty(dtype, {4, 6});
    EXPECT_THROW(linear(device.ctx(), y, device.empty(dtype, {4, 7}), w), Error);
    EXPECT_THROW(linear(device.ctx(), device.empty(dtype, {4, 5}), x, w), Error);
    EXPECT_THROW(linear(device.ctx(), device.empty(dtype, {3, 6}), x, w), Error);
    EXPECT_THROW(linear(device.ctx(), device.empty(Dtype::i32, {4, 6}), x, w), Error);
    EXPECT_THROW(linear(device.ctx(), y, x, Matrix{}), Error);
    EXPECT_THROW(linear(device.ctx(), y, x, w, {.bias = device.empty(Dtype::f32, {5})}), Error);
    EXPECT_THROW(linear(device.ctx(), y, x, w, {.residual = device.empty(dtype, {4, 5})}), Error);
    Matrix no_scales = {device.empty(Dtype::i8, {6, 8}), {}};
    EXPECT_THROW(linear(device.ctx(), y, x, no_scales), Error);
    const Matrix too_many = {w.values, device.empty(Dtype::f32, {6})};
    EXPECT_THROW(linear(device.ctx(), y, x, too_many), Error);
}

// Shapes that a GPU multiplies in other ways: aligned rows, several tiles, long sums.
TEST_P(LinearOp, AgreesInWholeTiles) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const WeightCase& weights : kWeights)
        for (const LinearShape& shape :
             {LinearShape{1, 256, 1280}, LinearShape{4, 130, 640}, LinearShape{8, 96, 1024},
              LinearShape{9, 128, 256}, LinearShape{32, 96, 512}, LinearShape{200, 264, 384}})
            for (const Activation activation : {Activation::gelu, Activation::gelu_tanh})
                check_product(device, GetParam(), weights, shape, activation, true,
                              activation == Activation::gelu ? 1 : 0);
}

const DeviceCase kLinearCases[] = {kCpuCase, kOneThreadCase, kCudaF32Case, kCudaF16Case,
                                   kCudaBf16Case};
INSTANTIATE_TEST_SUITE_P(Devices, LinearOp, testing::ValuesIn(kLinearCases), name_of_case);

// For many rows weights of another type than the activations are converted in blocks; these need
// two. The first rows alone are multiplied without cuBLASLt.
TEST(LinearOnCuda, WeightsOfSeveralBlocks) {
    TestDevice device(kCudaF16Case);
    if (!device) GTEST_SKIP() << device.why_not();
    for (const Dtype weights : {Dtype::i8, Dtype::f32}) {
        const Arena::Scope scope(device.ctx().arena);
        const LinearInputs in({1500, 8200, 1024}, Dtype::f16, weights, 3);
        const Matrix w = in.up(device, weights);
        const Tensor x = device.up(in.x, Dtype::f16, {1500, 1024});
        const Tensor residual = device.up(in.residual, Dtype::f16, {1500, 8200});
        const Tensor all = device.empty(Dtype::f16, {1500, 8200});
        const Tensor first = device.empty(Dtype::f16, {40, 8200});
        Epilogue then = {device.up(in.bias, Dtype::f32, {8200}), Activation::gelu, residual};
        linear(device.ctx(), all, x, w, then);
        then.residual = residual.slice(0, 40);
        linear(device.ctx(), first, x.slice(0, 40), w, then);
        expect_near(device.down(all.slice(0, 40)), device.down(first), 4e-3);
    }
}

class LinearOnGpu : public testing::TestWithParam<DeviceCase> {};

// Every tile of the matrix units' kernels, sums whose last columns fill no step, and what cuBLASLt
// multiplies.
TEST_P(LinearOnGpu, AgreesAtEveryNumberOfRows) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const WeightCase& weights : kWeights) {
        for (const int64_t rows : {7, 13, 30, 64, 128, 300})
            for (const LinearShape& of :
                 {LinearShape{0, 75, 240}, LinearShape{0, 130, 72}, LinearShape{0, 40, 51}})
                check_product(device, GetParam(), weights, {rows, of.n, of.k}, Activation::gelu,
                              true, 1);
        for (const LinearShape& of :
             {LinearShape{65, 1293, 200}, LinearShape{128, 1288, 1032}, LinearShape{600, 1290, 72}})
            check_product(device, GetParam(), weights, of, Activation::gelu, true, 2);
        check_product(device, GetParam(), weights, {9, 51866, 16}, Activation::none, false, 0);
        check_product(device, GetParam(), weights, {70, 50257, 16}, Activation::none, true, 2);
        for (const int residual : {0, 1, 2})
            check_product(device, GetParam(), weights, {1501, 40, 80}, Activation::gelu, true,
                          residual);
        // Tiles of many rows that are full and cut off, with a depth that is no whole step.
        for (const LinearShape& of :
             {LinearShape{1700, 264, 328}, LinearShape{6000, 400, 72}, LinearShape{1500, 130, 64}})
            for (const Activation activation :
                 {Activation::none, Activation::gelu, Activation::gelu_tanh})
                check_product(device, GetParam(), weights, of, activation,
                              activation != Activation::none, activation != Activation::gelu);
    }
}

TEST_P(LinearOnGpu, UnalignedViews) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    for (const WeightCase& weights : kWeights) {
        LinearInputs in({20, 33, 64}, type, weights.dtype, 21);
        Matrix w = in.up(device, weights.dtype);
        const Tensor x = device.up(in.x, type, {20, 64}), y = device.empty(type, {20, 33});
        linear(device.ctx(), y, x, w);
        in.x.insert(in.x.begin(), 0);
        in.w.insert(in.w.begin(), 0);
        const Tensor odd_x = device.up(in.x, type, {20 * 64 + 1}).slice(1, 20 * 64 + 1);
        w.values =
            device.up(in.w, weights.dtype, {33 * 64 + 1}).slice(1, 33 * 64 + 1).reshaped({33, 64});
        const Tensor odd_y = device.empty(type, {20 * 33 + 1}).slice(1, 20 * 33 + 1);
        linear(device.ctx(), odd_y.reshaped({20, 33}), odd_x.reshaped({20, 64}), w);
        SCOPED_TRACE(name_of(weights.dtype));
        expect_near(device.down(odd_y), device.down(y), 2 * GetParam().tolerance);
    }
}

// A row must not change with what is decoded next to it, nor by how many rows: alone, 7, 64.
TEST_P(LinearOnGpu, RowsAreTheSameBitsWhateverIsBesideThem) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const WeightCase& weights : kWeights) {
        for (const int64_t k : {51, 77, 240, 384, 1280, 2064})
            check_neighbours(device, GetParam().activations, weights.dtype, {300, 37, k},
                             {1, 7, 13, 30, 64, 128, 299});
        for (const int64_t k : {3144, 5120})  // long slices
            check_neighbours(device, GetParam().activations, weights.dtype, {64, 40, k},
                             {1, 7, 8, 9});
        for (const int64_t k : {80, 384})  // many outputs are multiplied in other tiles
            check_neighbours(device, GetParam().activations, weights.dtype, {160, 16500, k},
                             {1, 5, 13, 30, 64, 100});
        check_neighbours(device, GetParam().activations, weights.dtype, {70, 3840, 320},
                         {1, 13, 30});
        // One row's tiles of 8 outputs, of 16, and several of a block.
        for (const LinearShape& shape : {LinearShape{40, 2048, 8192}, LinearShape{40, 3072, 2048},
                                         LinearShape{40, 4352, 4096}})
            check_neighbours(device, GetParam().activations, weights.dtype, shape, {1, 13},
                             GetParam().activations, Activation::none, true);
        // A vocabulary's row of 12 slices.
        if (weights.dtype == GetParam().activations)
            check_neighbours(device, GetParam().activations, weights.dtype, {7, 16384, 2880}, {1},
                             GetParam().activations, Activation::none, true);
        // Long slices of 16 warps, outputs that fill no block.
        for (const LinearShape& shape :
             {LinearShape{20, 1288, 5120}, LinearShape{20, 768, 3072}, LinearShape{20, 600, 6400}})
            check_neighbours(device, GetParam().activations, weights.dtype, shape, {1, 7},
                             GetParam().activations, Activation::none, true);
        // Short rows, with and without all warps, outputs that fill no block.
        for (const Activation activation :
             {Activation::none, Activation::gelu, Activation::gelu_tanh})
            for (const LinearShape& shape :
                 {LinearShape{20, 1288, 1280}, LinearShape{20, 392, 1536},
                  LinearShape{20, 1536, 384}, LinearShape{20, 40, 64}})
                check_neighbours(device, GetParam().activations, weights.dtype, shape, {1, 7},
                                 GetParam().activations, activation,
                                 activation == Activation::none);
        check_neighbours(device, GetParam().activations, weights.dtype, {1200, 1290, 128},
                         {50, 100, 256, 512});
    }
}

// Every kernel and tile below the encoder's rows against a row alone: outputs that fill tiles or
// not, written 8, 2 and 1 at a time, slices of every length, the last columns no whole unit.
TEST_P(LinearOnGpu, RowsAreTheSameBitsInEveryBatch) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    const auto check = [&](Dtype weights, int64_t n, int64_t k, Dtype y_type, Activation activation,
                           bool residual) {
        check_neighbours(device, type, weights, {1499, n, k},
                         {1, 7, 8, 16, 32, 33, 64, 65, 128, 200, 512, 1024}, y_type, activation,
                         residual);
    };
    for (const WeightCase& weights : kWeights) {
        check(weights.dtype, 1290, 2064, type, Activation::none, true);
        check(weights.dtype, 1296, 328, type, Activation::gelu, false);
        check(weights.dtype, 1293, 200, type, Activation::gelu_tanh, true);
        check(weights.dtype, 1290, 72, Dtype::f32, Activation::gelu, true);
        check_neighbours(device, type, weights.dtype, {200, 4104, 648}, {1, 8, 33, 64, 128}, type);
    }
}

// Nor a window of the encoder with the windows next to it.
TEST_P(LinearOnGpu, WindowsAreTheSameBitsWhateverIsBesideThem) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const WeightCase& weights : kWeights)
        for (const LinearShape& shape : {LinearShape{12000, 384, 384},
                                         LinearShape{12000, 128, 1536}, LinearShape{12000, 37, 51}})
            for (const Dtype y_type : {GetParam().activations, Dtype::f32})
                check_neighbours(device, GetParam().activations, weights.dtype, shape,
                                 {1500, 3000, 6000}, y_type);
}

// cuBLASLt has another algorithm for 8 windows, and for 16, than for one.
TEST_P(LinearOnGpu, ManyWindowsHaveTheBitsOfOne) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    for (const LinearShape& shape : {LinearShape{12000, 384, 1536}, LinearShape{12000, 200, 328},
                                     LinearShape{24000, 1032, 1096}})
        check_neighbours(device, type, type, shape, {1500}, type, Activation::none, true);
}

INSTANTIATE_TEST_SUITE_P(Devices, LinearOnGpu,
                         testing::Values(kCudaF32Case, kCudaF16Case, kCudaBf16Case), name_of_case);

// A decoder's row must not change with what is decoded next to it.
TEST(LinearRows, AreTheSameBitsWhateverIsBesideThem) {
    TestDevice device(kCpuCase), alone(kOneThreadCase);
    for (const WeightCase& weights : kWeights) {
        const LinearInputs in({16, 37, 77}, Dtype::f32, weights.dtype, 3);
        const Matrix w = in.up(device, weights.dtype);
        Tensor x = device.up(in.x, Dtype::f32, {16, 77});
        Tensor all = device.empty(Dtype::f32, {16, 37});
        const Epilogue then = {.bias = device.up(in.bias, Dtype::f32, {37}),
                               .activation = Activation::gelu};
        linear(device.ctx(), all, x, w, then);
        const std::vector<float> together = device.down(all);
        for (int64_t count : {1, 2, 3, 5, 7, 12})
            for (int64_t t = 0; t + count <= 16; t += count) {
                Tensor some = alone.empty(Dtype::f32, {count, 37});
                linear(alone.ctx(), some, x.slice(t, t + count), w, then);
                EXPECT_EQ(0, std::memcmp(some.data, together.data() + t * 37, some.bytes()))
                    << name_of(weights.dtype) << " row " << t << " of " << count;
            }
    }
}

}  // namespace
}  // namespace hark::test
