// Products of rows of 16-bit integers against double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace hark::test {

// y (T, N) = x (T, K) w (N, K)^T times the scale of x's row, within 1e-6 of a sum's magnitudes.
inline void expect_products(const std::vector<float>& y, const std::vector<float>& w,
                            const std::vector<int16_t>& x, const std::vector<float>& scales) {
    const size_t t = scales.size(), k = x.size() / t, n = w.size() / k;
    ASSERT_EQ(y.size(), t * n);
    for (size_t i = 0; i < t; ++i)
        for (size_t j = 0; j < n; ++j) {
            double sum = 0, size = 0;
            for (size_t m = 0; m < k; ++m) {
                const double product = double{w[j * k + m]} * x[i * k + m] * scales[i];
                sum += product;
                size += std::abs(product);
            }
            ASSERT_NEAR(y[i * n + j], sum, 1e-6 * size) << "row " << i << ", output " << j;
        }
}

}  // namespace hark::test
