#include "kernels/ops.h"
#include "support/kernels_golden.h"
#include "support/ops.h"

namespace hark::test {
namespace {

class LayerNorms : public testing::TestWithParam<DeviceCase> {
  protected:
    static bool on_cpu() { return GetParam().device == Device::cpu; }
};

std::vector<double> layer_norm_normalized(const std::vector<float>& x, const std::vector<float>& w,
                                          const std::vector<float>& b, double eps) {
    const size_t columns = w.size();
    std::vector<double> y;
    for (size_t first = 0; first < x.size(); first += columns) {
        double mean = 0, variance = 0;
        for (size_t c = 0; c < columns; ++c) mean += x[first + c] / static_cast<double>(columns);
        for (size_t c = 0; c < columns; ++c)
            variance += std::pow(x[first + c] - mean, 2) / static_cast<double>(columns);
        for (size_t c = 0; c < columns; ++c)
            y.push_back((x[first + c] - mean) / std::sqrt(variance + eps) * w[c] + b[c]);
    }
    return y;
}

TEST_P(LayerNorms, AgreesWithPyTorch) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const nlohmann::json& golden = kernels_golden()["layer_norm"];
    const int64_t rows = golden["rows"], columns = golden["columns"];
    const Dtype dtype = GetParam().activations;
    const std::vector<float> values = golden["x"], w = golden["w"], b = golden["b"];
    Tensor x = device.up(values, dtype, {rows, columns}), y = device.empty(dtype, {rows, columns});
    layer_norm(device.ctx(), y, x, device.up(w, Dtype::f32, {columns}),
               device.up(b, Dtype::f32, {columns}));
    // PyTorch's values are those of an x in f32.
    if (dtype == Dtype::f32)
        expect_near(device.down(y), golden["y"].get<std::vector<double>>(), GetParam().tolerance);
    else
        expect_near(device.down(y),
                    layer_norm_normalized(TestDevice::rounded(values, dtype), w, b, 1e-5),
                    GetParam().tolerance);
}

TEST_P(LayerNorms, AnyNumberOfColumnsAndInPlace) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    // On a GPU few rows, more than 512, columns in whole vectors and others are each other kernels.
    for (const int64_t columns : {1, 2, 5, 7, 16, 31, 51, 384, 1023, 1024, 1280, 2048, 4096, 8200})
        for (const int64_t rows : {1, 3, 70, 601}) {
            if (rows == 601 && (on_cpu() || columns > 4096)) continue;
            SCOPED_TRACE(concat(rows, " x ", columns));
            const Arena::Scope scope(device.ctx().arena);
            const std::vector<float> x =
                TestDevice::rounded(random_values(rows * columns, columns, 3), dtype);
            const std::vector<float> w = random_values(columns, 1), b = random_values(columns, 2);
            Tensor xy = device.up(x, dtype, {rows, columns});
            layer_norm(device.ctx(), xy, xy, device.up(w, Dtype::f32, {columns}),
                       device.up(b, Dtype::f32, {columns}), 1e-3f);
            expect_near(device.down(xy), layer_norm_normalized(x, w, b, 1e-3),
                        GetParam().tolerance);
        }
}

// A mean that is 100,000 deviations: the input itself has but three digits of its deviation left.
TEST_P(LayerNorms, LargeMeanAndTinyVariance) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    std::vector<float> x = random_values(1280, 4, 0.05);
    for (float& value : x) value += 5000;
    x = TestDevice::rounded(x, GetParam().activations);
    const std::vector<float> w(1280, 1), b(1280, 0);
    Tensor xy = device.up(x, GetParam().activations, {1, 1280});
    layer_norm(device.ctx(), xy, xy, device.up(w, Dtype::f32, {1280}),
               device.up(b, Dtype::f32, {1280}));
    expect_near(device.down(xy), layer_norm_normalized(x, w, b, 1e-5), GetParam().tolerance);
}

TEST_P(LayerNorms, WrongShapesAreErrors) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    Tensor x = device.empty(Dtype::f32, {2, 8}), w = device.empty(Dtype::f32, {8});
    EXPECT_THROW(layer_norm(device.ctx(), x, x, w, device.empty(Dtype::f32, {7})), Error);
    EXPECT_THROW(layer_norm(device.ctx(), device.empty(Dtype::f32, {3, 8}), x, w, w), Error);
    EXPECT_THROW(layer_norm(device.ctx(), x, device.empty(Dtype::f16, {2, 8}), w, w), Error);
    EXPECT_THROW(layer_norm(device.ctx(), x, x, w, Tensor()), Error);
}

const DeviceCase kLayerNormCases[] = {kCpuCase,     kOneThreadCase, kCpuBf16Case,
                                      kCudaF32Case, kCudaF16Case,   kCudaBf16Case};
INSTANTIATE_TEST_SUITE_P(Devices, LayerNorms, testing::ValuesIn(kLayerNormCases), name_of_case);

// A residual kept in f32 goes into products of 16 bits.
TEST(LayerNormOnCuda, NarrowsOnTheWay) {
    TestDevice device(kCudaF16Case);
    if (!device) GTEST_SKIP() << device.why_not();
    for (const int64_t columns : {51, 1280})
        for (const int64_t rows : {2, 520}) {
            const std::vector<float> x = random_values(rows * columns, columns);
            const std::vector<float> w = random_values(columns, 1), b = random_values(columns, 2);
            Tensor y = device.empty(Dtype::f16, {rows, columns});
            layer_norm(device.ctx(), y, device.up(x, Dtype::f32, {rows, columns}),
                       device.up(w, Dtype::f32, {columns}), device.up(b, Dtype::f32, {columns}));
            expect_near(device.down(y), layer_norm_normalized(x, w, b, 1e-5), 6e-4);
        }
}

// Few rows and many are layer_norm_normalized by different kernels.
TEST(LayerNormOnCuda, RowsAreTheSameBitsWhateverIsBesideThem) {
    for (const DeviceCase& on : {kCudaF32Case, kCudaF16Case, kCudaBf16Case}) {
        TestDevice device(on);
        if (!device) GTEST_SKIP() << device.why_not();
        for (const int64_t columns : {51, 384, 768, 1280, 1600, 2048}) {
            Tensor x =
                device.up(random_values(600 * columns, columns), on.activations, {600, columns});
            Tensor w = device.up(random_values(columns, 1), Dtype::f32, {columns});
            Tensor b = device.up(random_values(columns, 2), Dtype::f32, {columns});
            Tensor all = device.empty(on.activations, {600, columns});
            Tensor some = device.empty(on.activations, {100, columns});
            layer_norm(device.ctx(), all, x, w, b);
            layer_norm(device.ctx(), some, x.slice(500, 600), w, b);
            EXPECT_EQ(device.down(all.slice(500, 600)), device.down(some))
                << name_of(on.activations) << ", " << columns << " columns";
        }
    }
}

}  // namespace
}  // namespace hark::test
