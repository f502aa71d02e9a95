#include "kernels/ops.h"
#include "kernels/weights.h"
#include "support/ops.h"

namespace hark::test {
namespace {

TEST(Conv1d, AgreesWithPyTorch) {
    TestDevice device(kCpuCase);
    for (const nlohmann::json& golden : kernels_golden()["conv1d"]) {
        const std::vector<int64_t> shape = golden["shape"];  // B, T, C
        const int64_t outputs = golden["outputs"], frames = golden["frames"];
        Weights weights(Precision::Weights::f32);
        const Matrix w =
            weights.convolution(device.up(golden["w"], Dtype::f32, {outputs, shape[2], 3}));
        Tensor x = device.up(golden["x"], Dtype::f32, {shape[0], shape[1], shape[2]});
        Tensor y = device.empty(Dtype::f32, {shape[0], frames, outputs});
        conv1d(device.ctx(), y, x, w, golden["stride"],
               {.bias = device.up(golden["b"], Dtype::f32, {outputs})});
        expect_near(device.down(y), golden["y"].get<std::vector<double>>(), 1e-6);
    }
}

// Long enough for the product of many rows, with everything fused.
TEST(Conv1d, AgreesWithTheSumInDouble) {
    TestDevice device(kCpuCase);
    constexpr int64_t kChannels = 13, kOutputs = 21;
    const std::vector<float> stored = random_values(kOutputs * kChannels * 3, 2, 0.2);
    for (const auto precision : {Precision::Weights::f32, Precision::Weights::f16,
                                 Precision::Weights::bf16, Precision::Weights::int8})
        for (const int64_t frames : {1, 2, 19, 80})
            for (const int stride : {1, 2, 3}) {
                Weights weights(precision);
                const Matrix w =
                    weights.convolution(device.up(stored, Dtype::f32, {kOutputs, kChannels, 3}));
                const int64_t t_out = (frames - 1) / stride + 1;
                const std::vector<float> x = random_values(2 * frames * kChannels, 3);
                Tensor y = device.up(random_values(2 * t_out * kOutputs, 4), Dtype::f32,
                                     {2, t_out, kOutputs});
                const std::vector<float> before = device.down(y);
                conv1d(device.ctx(), y, device.up(x, Dtype::f32, {2, frames, kChannels}), w, stride,
                       {.activation = Activation::gelu, .residual = y});
                std::vector<double> expected;
                for (int64_t i = 0; i < 2 * t_out * kOutputs; ++i) {
                    const int64_t b = i / (t_out * kOutputs), t = i / kOutputs % t_out;
                    double sum = 0;
                    for (int64_t c = 0; c < kChannels; ++c)
                        for (int64_t tap = 0; tap < 3; ++tap) {
                            const int64_t frame = t * stride + tap - 1;
                            if (frame < 0 || frame >= frames) continue;
                            sum += static_cast<double>(x[(b * frames + frame) * kChannels + c]) *
                                   stored[(i % kOutputs * kChannels + c) * 3 + tap];
                        }
                    expected.push_back(before[i] +
                                       0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0))));
                }
                // int8 rounds both factors to 1 / 254 of their largest, over 39 terms.
                const bool rounded =
                    precision == Precision::Weights::bf16 || precision == Precision::Weights::int8;
                const bool half = precision == Precision::Weights::f16;
                expect_near(device.down(y), expected, rounded ? 6e-2 : half ? 1e-3 : 1e-5);
            }
}

TEST(Conv1d, WrongShapesAreErrors) {
    TestDevice device(kCpuCase);
    const Matrix w = {device.empty(Dtype::f32, {4, 15}), {}};
    Tensor x = device.empty(Dtype::f32, {1, 9, 5});
    EXPECT_THROW(conv1d(device.ctx(), device.empty(Dtype::f32, {1, 8, 4}), x, w, 1), Error);
    EXPECT_THROW(conv1d(device.ctx(), device.empty(Dtype::f32, {1, 9, 4}), x, w, 0), Error);
    EXPECT_THROW(conv1d(device.ctx(), device.empty(Dtype::f32, {1, 9, 4}),
                        device.empty(Dtype::f32, {1, 9, 4}), w, 1),
                 Error);
}

}  // namespace
}  // namespace hark::test
