// Random operands of a product, what it is in double, and whether its rows depend on one another.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "support/ops.h"

namespace hark::test {

// A product's weights and how far off its sum may be, relative to |x| |w|.
struct WeightCase {
    Dtype dtype;
    double few_rows, many_rows;
};

// Many rows of bf16 and int8 are multiplied by activations rounded to bf16 (8 bits) and int8 where
// the processor can. A few rows times int8 weights round the activations to 16 bits at most: four
// deviations of that rounding are 4 * 0.29 / 32767. x times fp8 is such that a GPU's rounding of it
// changes nothing (LinearInputs).
inline constexpr WeightCase kWeights[] = {{Dtype::f32, 1e-6, 1e-6},
                                          {Dtype::f16, 1e-6, 1e-6},
                                          {Dtype::bf16, 1e-6, 3e-3},
                                          {Dtype::i8, 4e-5, 8e-3},
                                          {Dtype::fp8, 1e-6, 1e-6}};

struct LinearShape {
    int64_t t, n, k;
};

struct LinearInputs {
    LinearShape shape;
    std::vector<float> x, w, scales, bias, residual;

    LinearInputs(LinearShape shape, Dtype activations, Dtype weights, uint64_t seed)
        : shape(shape) {
        const auto [t, n, k] = shape;
        x = TestDevice::rounded(random_values(t * k, seed), activations);
        w = random_values(n * k, seed + 1, 1 / std::sqrt(static_cast<double>(k)));
        if (weights == Dtype::i8) {
            scales.assign(n, 1.0f / 127 / std::sqrt(static_cast<float>(k)));
            for (int64_t i = 0; i < n * k; ++i)
                w[i] = std::clamp(std::round(w[i] / scales[i / k]), -127.0f, 127.0f);
        }
        if (weights == Dtype::fp8) {
            scales.assign(n, 1.0f / 128 / std::sqrt(static_cast<float>(k)));
            for (int64_t i = 0; i < n * k; ++i) w[i] /= scales[i / k];
            round_rows_to_fp8();
        }
        w = TestDevice::rounded(w, weights);
        bias = random_values(n, seed + 2);
        residual = TestDevice::rounded(random_values(t * n, seed + 3), activations);
    }
    Matrix up(TestDevice& device, Dtype dtype) const {
        Matrix matrix;
        matrix.values = device.up(w, dtype, {shape.n, shape.k});
        if (has_row_scales(dtype)) matrix.scales = device.up(scales, Dtype::f32, {shape.n});
        return matrix;
    }
    // Rows of e4m3 / 2^7 whose largest magnitude is 448 / 2^7.
    void round_rows_to_fp8() {
        for (float& value : x) value = to_float(to_fp8(value * 128)) / 128;
        for (int64_t t = 0; t < shape.t; ++t) x[t * shape.k + t % shape.k] = kLargestFp8 / 128;
    }
    static double activated(double x, Activation activation) {
        if (activation == Activation::gelu) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
        if (activation == Activation::gelu_tanh)
            return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        return x;
    }
    // In double. `size` gets |x| |w| for every value.
    std::vector<double> expected(const Epilogue& then, std::vector<double>& size) const {
        const auto [t_size, n_size, k_size] = shape;
        std::vector<double> y;
        size.clear();
        for (int64_t t = 0; t < t_size; ++t)
            for (int64_t n = 0; n < n_size; ++n) {
                const float *a = &x[t * k_size], *b = &w[n * k_size];
                const auto k = static_cast<size_t>(k_size);
                const double scale = scales.empty() ? 1 : scales[n];
                double sum = dot(a, b, k) * scale;
                const double x2 = dot(a, a, k), w2 = dot(b, b, k) * scale * scale;
                if (then.bias) sum += bias[n];
                sum = activated(sum, then.activation);
                if (then.residual) sum += residual[t * n_size + n];
                y.push_back(sum);
                size.push_back(std::sqrt(x2 * w2));
            }
        return y;
    }
};

// Multiplies all rows at once, then shuffled in batches of every size given, and compares bits.
inline void check_neighbours(TestDevice& device, Dtype activations, Dtype weights,
                             LinearShape shape, std::initializer_list<int64_t> batches,
                             Dtype y_type = Dtype::f32, Activation activation = Activation::gelu,
                             bool with_residual = false, bool with_bias = true) {
    SCOPED_TRACE(concat(name_of(weights), " T ", shape.t, " N ", shape.n, " K ", shape.k, " y ",
                        name_of(y_type), " activation ", static_cast<int>(activation), " residual ",
                        with_residual));
    const Arena::Scope scope(device.ctx().arena);
    const auto [rows, n, k] = shape;
    const LinearInputs in(shape, activations, weights, 3);
    const Matrix w = in.up(device, weights);
    Epilogue then = {.activation = activation};
    if (with_bias) then.bias = device.up(in.bias, Dtype::f32, {n});
    if (with_residual) then.residual = device.up(in.residual, y_type, {rows, n});
    Tensor all = device.empty(y_type, {rows, n});
    linear(device.ctx(), all, device.up(in.x, activations, {rows, k}), w, then);
    const std::vector<float> together = device.down(all);
    std::vector<int64_t> order(rows);
    for (int64_t i = 0; i < rows; ++i) order[i] = i * 7919 % rows;  // a prime
    const auto shuffled = [&](const std::vector<float>& values, int64_t width) {
        std::vector<float> moved;
        for (int64_t row : order)
            moved.insert(moved.end(), values.begin() + row * width,
                         values.begin() + (row + 1) * width);
        return moved;
    };
    const Tensor x = device.up(shuffled(in.x, k), activations, {rows, k});
    Tensor residual;
    if (with_residual) residual = device.up(shuffled(in.residual, n), y_type, {rows, n});
    for (const int64_t batch : batches) {
        int64_t different = 0;
        for (int64_t begin = 0; begin < rows; begin += batch) {
            const int64_t end = std::min(rows, begin + batch);
            Tensor y = all.slice(begin, end);
            if (with_residual) then.residual = residual.slice(begin, end);
            linear(device.ctx(), y, x.slice(begin, end), w, then);
        }
        const std::vector<float> found = device.down(all);
        for (int64_t i = 0; i < rows; ++i)
            different += std::memcmp(found.data() + i * n, together.data() + order[i] * n,
                                     static_cast<size_t>(n) * sizeof(float)) != 0;
        EXPECT_EQ(different, 0) << "rows of " << rows << " in batches of " << batch;
    }
}

}  // namespace hark::test
