// Products of e4m3: its numbers, the rounding of rows, and what a GPU makes of many rows.
#include "core/fp8.h"

#include "kernels/linear_case.h"
#include "kernels/quant/fp8_rows.h"
#include "support/ops.h"

namespace hark::test {
namespace {

fp8_t fp8_of(int bits) { return {static_cast<uint8_t>(bits)}; }

TEST(Fp8, NumbersAreTheirBits) {
    for (int bits = 0; bits < 256; ++bits) {
        if ((bits & 0x7f) == 0x7f) {
            EXPECT_TRUE(std::isnan(to_float(fp8_of(bits))));
        } else {
            EXPECT_EQ(to_fp8(to_float(fp8_of(bits))).bits, bits);
        }
    }
    EXPECT_EQ(to_float(fp8_of(0x01)), 0x1p-9f);
    EXPECT_EQ(to_float(fp8_of(0x08)), 0x1p-6f);
    EXPECT_EQ(to_float(fp8_of(0x38)), 1.0f);
    EXPECT_EQ(to_float(fp8_of(0xfe)), -kLargestFp8);
}

TEST(Fp8, RoundsToTheNearestAndTiesToEven) {
    for (int bits = 0; bits < 0x7e; ++bits) {
        const float low = to_float(fp8_of(bits)), high = to_float(fp8_of(bits + 1));
        const float middle = (low + high) / 2;  // exact
        EXPECT_EQ(to_fp8(middle).bits, bits % 2 == 0 ? bits : bits + 1);
        EXPECT_EQ(to_fp8(std::nextafter(middle, low)).bits, bits);
        EXPECT_EQ(to_fp8(std::nextafter(middle, high)).bits, bits + 1);
        EXPECT_EQ(to_fp8(-std::nextafter(middle, high)).bits, (bits + 1) | 0x80);
    }
    EXPECT_EQ(to_float(to_fp8(1e9f)), kLargestFp8);
    EXPECT_EQ(to_float(to_fp8(-INFINITY)), -kLargestFp8);
    EXPECT_TRUE(std::isnan(to_float(to_fp8(NAN))));
}

TEST(Fp8, ARowsLargestIsTheLargestNumber) {
    for (const float size : {1.0f, 1e-20f, 1e20f}) {
        const std::vector<float> row = random_values(77, 3, size);
        std::vector<fp8_t> rounded(77);
        const float scale = quantize_fp8(rounded.data(), row.data(), 77);
        float largest = 0;
        for (size_t i = 0; i < 77; ++i) {
            largest = std::max(largest, std::abs(to_float(rounded[i])));
            EXPECT_NEAR(to_float(rounded[i]) * scale, row[i],
                        std::max(std::abs(row[i]) / 16, scale * 0x1p-10f) * 1.0001);
        }
        EXPECT_EQ(largest, kLargestFp8);
    }
    const std::vector<float> zeros(5, 0.0f);
    std::vector<fp8_t> rounded(5);
    EXPECT_EQ(quantize_fp8(rounded.data(), zeros.data(), 5) * to_float(rounded[4]), 0);
}

class Fp8Rows : public testing::TestWithParam<DeviceCase> {
  protected:
    // The rows that a check compares: a few dozen, at most places of a tile, and the last one.
    static std::vector<int64_t> rows_of(int64_t t) {
        const int64_t step = t / 32 | 1;  // odd
        std::vector<int64_t> rows;
        for (int64_t row = 0; row < t; row += step) rows.push_back(row);
        if (rows.back() != t - 1) rows.push_back(t - 1);
        return rows;
    }
    // These rows of (T, columns).
    static std::vector<float> gathered(const std::vector<float>& from,
                                       const std::vector<int64_t>& rows, int64_t columns) {
        std::vector<float> to;
        for (const int64_t row : rows)
            to.insert(to.end(), from.begin() + row * columns, from.begin() + (row + 1) * columns);
        return to;
    }
    // x as the rows of a product of many rows are rounded.
    static void round_x(LinearInputs& in) {
        const int64_t k = in.shape.k;
        std::vector<fp8_t> row(static_cast<size_t>(k));
        for (int64_t t = 0; t < in.shape.t; ++t) {
            float* x = in.x.data() + t * k;
            widen_fp8(x, row.data(), quantize_fp8(row.data(), x, k), k);
        }
    }
    void check(TestDevice& device, LinearShape shape, Activation activation, int residual,
               Dtype y_type) {
        SCOPED_TRACE(concat("T ", shape.t, " N ", shape.n, " K ", shape.k, " activation ",
                            static_cast<int>(activation), " residual ", residual, " y ",
                            name_of(y_type)));
        const Arena::Scope scope(device.ctx().arena);
        LinearInputs in(shape, GetParam().activations, Dtype::fp8, 5 + shape.t);
        in.x = TestDevice::rounded(random_values(shape.t * shape.k, 9), GetParam().activations);
        in.residual = TestDevice::rounded(in.residual, y_type);
        const Tensor x = device.up(in.x, GetParam().activations, {shape.t, shape.k});
        const Tensor y = device.up(in.residual, y_type, {shape.t, shape.n});
        Epilogue then = {device.up(in.bias, Dtype::f32, {shape.n}), activation, {}};
        if (residual == 1) then.residual = device.up(in.residual, y_type, {shape.t, shape.n});
        if (residual == 2) then.residual = y;
        linear(device.ctx(), y, x, in.up(device, Dtype::fp8), then);
        const std::vector<int64_t> rows = rows_of(shape.t);
        in.x = gathered(in.x, rows, shape.k);
        in.residual = gathered(in.residual, rows, shape.n);
        in.shape.t = std::ssize(rows);
        round_x(in);
        std::vector<double> size;
        const std::vector<double> expected = in.expected(then, size);
        const std::vector<float> found = gathered(device.down(y), rows, shape.n);
        for (size_t i = 0; i < found.size(); ++i)
            ASSERT_NEAR(found[i], expected[i],
                        GetParam().tolerance * (size[i] + std::abs(expected[i])) + 1e-6)
                << "row " << rows[i / static_cast<size_t>(shape.n)] << ", value " << i;
    }
};

// Tiles that are full and cut off, y written 8 at a time and singly, a depth that is no whole step.
TEST_P(Fp8Rows, ManyAreRoundedAsTheDefinitionDoes) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const LinearShape& of :
         {LinearShape{1500, 130, 64}, LinearShape{1700, 136, 336}, LinearShape{1501, 51, 912}})
        for (const Activation activation :
             {Activation::none, Activation::gelu, Activation::gelu_tanh})
            for (const Dtype y_type : {GetParam().activations, Dtype::f32}) {
                // cuBLASLt, which takes no other N, multiplies for GELU by tanh.
                if (activation == Activation::gelu_tanh && of.n % 16 != 0) continue;
                check(device, of, activation, static_cast<int>(of.n + (y_type == Dtype::f32)) % 3,
                      y_type);
            }
    // More tiles than multiprocessors.
    check(device, {6000, 400, 80}, Activation::gelu, 1, GetParam().activations);
    for (const int residual : {0, 1, 2})
        check(device, {1650, 192, 384}, Activation::gelu, residual, GetParam().activations);
}

// Where rows may depend on their number.
TEST_P(Fp8Rows, OfABatchAreRoundedAsTheDefinitionDoes) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    device.ctx().batch_invariant = false;
    for (const LinearShape& of :
         {LinearShape{33, 256, 256}, LinearShape{50, 64, 1280}, LinearShape{128, 272, 1040},
          LinearShape{64, 1008, 4096}, LinearShape{300, 272, 512}, LinearShape{1600, 128, 384}})
        for (const Activation activation :
             {Activation::none, Activation::gelu, Activation::gelu_tanh})
            for (const Dtype y_type : {GetParam().activations, Dtype::f32})
                check(device, of, activation, static_cast<int>(of.t + (y_type == Dtype::f32)) % 3,
                      y_type);
}

// The rounding of many rows computes their norm too.
TEST_P(Fp8Rows, NormsAreWhatTheyAreByThemselves) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    for (const int64_t k : {64, 384, 1280, 2064, 4096, 4112}) {
        SCOPED_TRACE(k);
        const Arena::Scope scope(device.ctx().arena);
        constexpr int64_t kTall = 1530, kWide = 144;
        const LinearInputs in({kTall, kWide, k}, type, Dtype::fp8, 4);
        const Matrix w = in.up(device, Dtype::fp8);
        const Tensor x = device.up(in.x, type, {kTall, k});
        const Norm layer{device.up(random_values(k, 5), Dtype::f32, {k}),
                         device.up(random_values(k, 6), Dtype::f32, {k})},
            rms{layer.weight, {}, layer.eps, NormKind::rms};
        const Tensor fused = device.empty(type, {kTall, kWide}),
                     apart = device.empty(type, {kTall, kWide}),
                     normed = device.empty(type, {kTall, k});
        const Epilogue then{.activation = Activation::gelu};
        for (const Norm& norm : {layer, rms}) {
            linear(device.ctx(), fused, x, w, then, {.norm = norm});
            if (norm.kind == NormKind::rms)
                rms_norm(device.ctx(), normed, x, norm.weight, norm.eps);
            else
                layer_norm(device.ctx(), normed, x, norm.weight, norm.bias, norm.eps);
            linear(device.ctx(), apart, normed, w, then);
            EXPECT_EQ(device.down(fused), device.down(apart));
        }
    }
}

// One row of a language model: bf16 is multiplied as f16 times a power of two. Values of a row are
// up to 2^40 apart, in bf16 beyond f16's.
TEST_P(Fp8Rows, OneRowIsNotRounded) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    device.ctx().batch_invariant = false;
    const Dtype type = GetParam().activations;
    for (const LinearShape& of : {LinearShape{1, 40, 64}, LinearShape{1, 16400, 80},
                                  LinearShape{1, 64, 4096}, LinearShape{1, 24, 14336}})
        for (const float size : type == Dtype::f16 ? std::array{1e-2f, 1e-4f, 0.0f}
                                                   : std::array{1e25f, 1e-25f, 0.0f}) {
            SCOPED_TRACE(concat("N ", of.n, " K ", of.k, " size ", size));
            const Arena::Scope scope(device.ctx().arena);
            LinearInputs in(of, type, Dtype::fp8, 3);
            const std::vector<float> powers = random_values(of.k, 8, 4);
            in.x = random_values(of.k, 9, size);
            for (size_t i = 0; i < in.x.size(); ++i) in.x[i] *= std::exp2(powers[i]);
            in.x = TestDevice::rounded(in.x, type);
            const Tensor y = device.empty(Dtype::f32, {1, of.n});
            linear(device.ctx(), y, device.up(in.x, type, {1, of.k}), in.up(device, Dtype::fp8));
            std::vector<double> sizes;
            const std::vector<double> expected = in.expected({}, sizes);
            const std::vector<float> found = device.down(y);
            for (size_t i = 0; i < found.size(); ++i)
                ASSERT_NEAR(found[i], expected[i], 3e-5 * sizes[i]) << "value " << i;
        }
}

TEST_P(Fp8Rows, OneNormedRowIsWhatItIsByItself) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    device.ctx().batch_invariant = false;
    const Dtype type = GetParam().activations;
    for (const LinearShape& of : {LinearShape{1, 64, 384}, LinearShape{1, 4100, 4096}}) {
        SCOPED_TRACE(of.k);
        const Arena::Scope scope(device.ctx().arena);
        const LinearInputs in(of, type, Dtype::fp8, 4);
        const Matrix w = in.up(device, Dtype::fp8);
        const Tensor x = device.up(in.x, type, {1, of.k});
        const Norm norm{device.up(random_values(of.k, 5), Dtype::f32, {of.k}),
                        device.up(random_values(of.k, 6), Dtype::f32, {of.k})};
        const Tensor fused = device.empty(type, {1, of.n}), apart = device.empty(type, {1, of.n}),
                     normed = device.empty(type, {1, of.k});
        linear(device.ctx(), fused, x, w, {}, {.norm = norm});
        layer_norm(device.ctx(), normed, x, norm.weight, norm.bias, norm.eps);
        linear(device.ctx(), apart, normed, w);
        EXPECT_EQ(device.down(fused), device.down(apart));
    }
}

// Rows of x with NaN, of zeros, and so large or small that 16 bits barely hold them.
TEST_P(Fp8Rows, HaveScalesOfTheirOwn) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    constexpr int64_t kTall = 1600, kWide = 64;
    LinearInputs in({kTall, kWide, kWide}, GetParam().activations, Dtype::fp8, 7);
    for (int64_t i = 0; i < kTall * kWide; ++i)
        in.x[i] *= std::array{1.0f, 1e4f, 1e-4f, 0.0f}[i / kWide % 4];
    in.x = TestDevice::rounded(in.x, GetParam().activations);
    in.x[5 * kWide + 7] = NAN;
    const Tensor y = device.empty(Dtype::f32, {kTall, kWide});
    linear(device.ctx(), y, device.up(in.x, GetParam().activations, {kTall, kWide}),
           in.up(device, Dtype::fp8));
    round_x(in);
    std::vector<double> size;
    const std::vector<double> expected = in.expected({}, size);
    const std::vector<float> found = device.down(y);
    for (size_t i = 0; i < found.size(); ++i) {
        if (i / kWide == 5) {
            EXPECT_TRUE(std::isnan(found[i]));
        } else {
            ASSERT_NEAR(found[i], expected[i], GetParam().tolerance * size[i] + 1e-12) << i;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Fp8Rows, testing::Values(kCudaF16Case, kCudaBf16Case),
                         name_of_case);

}  // namespace
}  // namespace hark::test
