#include "kernels/ops.h"
#include "nn/weights.h"
#include "support/kernels_golden.h"
#include "support/ops.h"

namespace hark::test {
namespace {

class Conv1d : public testing::TestWithParam<DeviceCase> {};
class Conv1dInF32 : public testing::TestWithParam<DeviceCase> {};

TEST_P(Conv1dInF32, AgreesWithPyTorch) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    for (const nlohmann::json& golden : kernels_golden()["conv1d"]) {
        const std::vector<int64_t> shape = golden["shape"];  // B, T, C
        const int64_t outputs = golden["outputs"], frames = golden["frames"];
        std::vector<float> stored = golden["w"];
        WeightStore weights(WeightPrecision::f32, device.ctx().arena.source());
        const Matrix w = weights.convolution(TestDevice::host(stored, {outputs, shape[2], 3}));
        Tensor x = device.up(golden["x"], Dtype::f32, {shape[0], shape[1], shape[2]});
        Tensor y = device.empty(Dtype::f32, {shape[0], frames, outputs});
        conv1d(device.ctx(), y, x, w, golden["stride"],
               {.bias = device.up(golden["b"], Dtype::f32, {outputs})});
        expect_near(device.down(y), golden["y"].get<std::vector<double>>(),
                    device.ctx().on_cuda() ? 1e-5 : 1e-6);
    }
}

struct Conv1dCase {
    int64_t frames, channels, outputs;
    int stride;
};

// gelu(convolution of x (B, T, C)) + residual (B, T2, N), in double; stored (N, C, 3).
std::vector<double> conv1d_expected(const Conv1dCase& c, const std::vector<float>& x,
                                    const std::vector<float>& stored,
                                    const std::vector<float>& residual) {
    const int64_t t_out = (c.frames - 1) / c.stride + 1;
    std::vector<double> expected;
    for (int64_t i = 0; i < std::ssize(residual); ++i) {
        const int64_t b = i / (t_out * c.outputs), t = i / c.outputs % t_out, n = i % c.outputs;
        double sum = 0;
        for (int64_t channel = 0; channel < c.channels; ++channel)
            for (int64_t tap = 0; tap < 3; ++tap) {
                const int64_t frame = t * c.stride + tap - 1;
                if (frame < 0 || frame >= c.frames) continue;
                sum += static_cast<double>(x[(b * c.frames + frame) * c.channels + channel]) *
                       stored[(n * c.channels + channel) * 3 + tap];
            }
        expected.push_back(residual[i] + 0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0))));
    }
    return expected;
}

// int8 rounds both factors to 1 / 254 of their largest, over 39 terms.
double tolerance_of(WeightPrecision precision, const DeviceCase& on) {
    double tolerance = precision == WeightPrecision::f32   ? 1e-5
                       : precision == WeightPrecision::f16 ? 1e-3
                                                           : 6e-2;
    if (on.device == Device::cuda) tolerance = std::max(tolerance, 2 * on.tolerance);
    return tolerance;
}

// Two sequences; y is the residual too. x is given in `x_type`, rounded to the activations' type.
std::vector<float> conv1d_run(TestDevice& device, const Conv1dCase& c, const Matrix& w,
                              Dtype y_type, Dtype x_type, const std::vector<float>& x,
                              const std::vector<float>& residual) {
    const Arena::Scope scope(device.ctx().arena);
    Tensor y = device.up(residual, y_type, {2, (c.frames - 1) / c.stride + 1, c.outputs});
    conv1d(device.ctx(), y, device.up(x, x_type, {2, c.frames, c.channels}), w, c.stride,
           {.activation = Activation::gelu, .residual = y});
    return device.down(y);
}

// Long enough for the product of many rows, with everything fused.
TEST_P(Conv1d, AgreesWithTheSumInDouble) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    for (const auto precision :
         {WeightPrecision::f32, WeightPrecision::f16, WeightPrecision::bf16, WeightPrecision::int8})
        for (const auto& [channels, outputs] : {std::pair<int64_t, int64_t>{13, 21}, {16, 24}})
            for (const int64_t frames : {1, 2, 19, 80})
                for (const int stride : {1, 2, 3}) {
                    const Conv1dCase c = {frames, channels, outputs, stride};
                    const int64_t t_out = (frames - 1) / stride + 1;
                    std::vector<float> stored = random_values(outputs * channels * 3, 2, 0.2);
                    WeightStore weights(precision, device.ctx().arena.source());
                    const Matrix w =
                        weights.convolution(TestDevice::host(stored, {outputs, channels, 3}));
                    const std::vector<float> given = random_values(2 * frames * channels, 3);
                    const std::vector<float> x = TestDevice::rounded(given, dtype);
                    const std::vector<float> residual =
                        TestDevice::rounded(random_values(2 * t_out * outputs, 4), dtype);
                    SCOPED_TRACE(concat(static_cast<int>(precision), " ", frames, " x ", channels,
                                        " stride ", stride));
                    const std::vector<double> expected = conv1d_expected(c, x, stored, residual);
                    const double tolerance = tolerance_of(precision, GetParam());
                    expect_near(conv1d_run(device, c, w, dtype, dtype, x, residual), expected,
                                tolerance);
                    if (dtype == Dtype::f32) continue;
                    // An x in f32 is rounded before the product.
                    expect_near(conv1d_run(device, c, w, dtype, Dtype::f32, given, residual),
                                expected, tolerance);
                }
}

TEST_P(Conv1d, WrongShapesAreErrors) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    const Matrix w = {device.empty(Dtype::f32, {4, 15}), {}};
    Tensor x = device.empty(dtype, {1, 9, 5}), y = device.empty(dtype, {1, 9, 4});
    EXPECT_THROW(conv1d(device.ctx(), device.empty(dtype, {1, 8, 4}), x, w, 1), Error);
    EXPECT_THROW(conv1d(device.ctx(), y, x, w, 0), Error);
    EXPECT_THROW(conv1d(device.ctx(), y, y, w, 1), Error);
    EXPECT_THROW(conv1d(device.ctx(), y, x, w, 1, {.residual = x}), Error);
}

const DeviceCase kConv1dCases[] = {kCpuCase, kCudaF32Case, kCudaF16Case, kCudaBf16Case};
INSTANTIATE_TEST_SUITE_P(Devices, Conv1d, testing::ValuesIn(kConv1dCases), name_of_case);
const DeviceCase kF32Cases[] = {kCpuCase, kCudaF32Case};
INSTANTIATE_TEST_SUITE_P(Devices, Conv1dInF32, testing::ValuesIn(kF32Cases), name_of_case);

// More than is gathered at a time: the third sequence comes after the first two.
TEST(Conv1dOnCuda, SequencesInSeveralParts) {
    TestDevice device(kCudaF32Case);
    if (!device) GTEST_SKIP() << device.why_not();
    const Conv1dCase c = {3000, 400, 3, 1};
    std::vector<float> stored = random_values(3 * 400 * 3, 2, 0.03);
    const std::vector<float> x = random_values(3 * 3000 * 400, 3),
                             residual = random_values(3 * 3000 * 3, 4);
    WeightStore weights(WeightPrecision::f32, device.ctx().arena.source());
    const Matrix w = weights.convolution(TestDevice::host(stored, {3, 400, 3}));
    Tensor y = device.empty(Dtype::f32, {3, 3000, 3});
    conv1d(device.ctx(), y, device.up(x, Dtype::f32, {3, 3000, 400}), w, 1,
           {.activation = Activation::gelu,
            .residual = device.up(residual, Dtype::f32, {3, 3000, 3})});
    expect_near(device.down(y), conv1d_expected(c, x, stored, residual), 2e-5);
}

}  // namespace
}  // namespace hark::test
