// layer_norm inside a product of one row.
#include "kernels/linear_case.h"
#include "support/ops.h"

namespace hark::test {
namespace {

class LinearNorm : public testing::TestWithParam<DeviceCase> {};

// layer_norm inside a product of one row gives the bits of separate calls.
TEST_P(LinearNorm, OfOneRowIsWhatItIsByItself) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    for (const Activation activation : {Activation::none, Activation::gelu, Activation::gelu_tanh})
        for (const auto& [n, k] : {std::pair<int64_t, int64_t>{4096, 1024},
                                   {4104, 1024},
                                   {4096, 768},
                                   {1280, 1280},
                                   {392, 1536},
                                   {5120, 1280}}) {
            SCOPED_TRACE(concat("N ", n, " K ", k, " activation ", static_cast<int>(activation)));
            const Arena::Scope scope(device.ctx().arena);
            const LinearInputs in({1, n, k}, type, type, 5);
            const Matrix w = in.up(device, type);
            const Tensor x = device.up(in.x, type, {1, k});
            const Epilogue then = {.bias = device.up(in.bias, Dtype::f32, {n}),
                                   .activation = activation};
            const Norm norm{device.up(random_values(k, 1), Dtype::f32, {k}),
                            device.up(random_values(k, 2), Dtype::f32, {k})};
            const Tensor inside = device.empty(type, {1, n}), apart = device.empty(type, {1, n}),
                         normed = device.empty(type, {1, k});
            linear(device.ctx(), inside, x, w, then, {norm});
            layer_norm(device.ctx(), normed, x, norm.weight, norm.bias, norm.eps);
            linear(device.ctx(), apart, normed, w, then);
            EXPECT_EQ(device.down(inside), device.down(apart));
        }
}

INSTANTIATE_TEST_SUITE_P(Devices, LinearNorm,
                         testing::Values(kCudaF32Case, kCudaF16Case, kCudaBf16Case), name_of_case);

}  // namespace
}  // namespace hark::test
