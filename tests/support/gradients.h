// What tests of gradients.h share: tensors of a case, functions in double and their derivatives.
#pragma once

#include <functional>

#include "kernels/gradients.h"
#include "support/ops.h"

namespace hark::test {

using Values = std::vector<double>;

inline Values in_double(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// The derivative of f by each of x.
inline Values derivative(const std::function<double(const Values&)>& f, Values x) {
    constexpr double kStep = 1e-4;
    Values slopes;
    for (double& value : x) {
        const double kept = value;
        value = kept + kStep;
        const double above = f(x);
        value = kept - kStep;
        slopes.push_back((above - f(x)) / (2 * kStep));
        value = kept;
    }
    return slopes;
}

inline double dot(const Values& a, const Values& b) { return dot(a.data(), b.data(), a.size()); }

class GradientTest : public testing::TestWithParam<DeviceCase> {
  protected:
    void SetUp() override {
        device_ = std::make_unique<TestDevice>(GetParam());
        if (!*device_) GTEST_SKIP() << device_->why_not();
    }
    Context& ctx() { return device_->ctx(); }
    Dtype activations() const { return GetParam().activations; }

    // Values that the case's activations can hold.
    std::vector<float> random(int64_t count, uint64_t seed, double deviation = 1) const {
        return TestDevice::rounded(random_values(count, seed, deviation), activations());
    }
    // f32, as vectors and gradients of weights are everywhere.
    Tensor up(const std::vector<float>& values, std::initializer_list<int64_t> shape) {
        return device_->up(values, Dtype::f32, shape);
    }
    Tensor up(const std::vector<int32_t>& values) { return device_->up(values); }
    Tensor up_active(const std::vector<float>& values, std::initializer_list<int64_t> shape) {
        return device_->up(values, activations(), shape);
    }
    Tensor filled(std::initializer_list<int64_t> shape, float value, Dtype dtype = Dtype::f32) {
        const int64_t size = Tensor(nullptr, dtype, shape).size();
        return device_->up(std::vector<float>(static_cast<size_t>(size), value), dtype, shape);
    }
    Tensor filled_active(std::initializer_list<int64_t> shape, float value) {
        return filled(shape, value, activations());
    }
    std::vector<float> down(const Tensor& t) { return device_->down(t); }

    // What is computed in f32 and rounded once, where the tensor is bf16: by half a unit in the
    // last of its 8 binary places, 2^-8 of the value at most.
    void expect_values(const Tensor& t, const Values& expected, double tolerance = 1e-5) {
        expect_near(down(t), expected, tolerance + (t.dtype == Dtype::bf16 ? 0x1p-8 : 0));
    }
    // The tensor's values less what it held before, against derivatives by central differences.
    void expect_gradient(const Tensor& t, Values expected, double before = 0) {
        for (double& value : expected) value += before;
        expect_values(t, expected, 4e-5);
    }
    std::unique_ptr<TestDevice> device_;
};

}  // namespace hark::test
