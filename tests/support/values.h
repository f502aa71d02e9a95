// Loops over many values, optimised under the sanitizers too, which the tests' other code is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace hark::test {

// Sums in double, in the order of the values.
double dot(const double* a, const double* b, size_t n);
double dot(const double* a, const float* b, size_t n);
double dot(const float* a, const float* b, size_t n);

// to[i] += factor * x[i].
void add_scaled(double* to, double factor, const double* x, size_t n);
void add_scaled(double* to, double factor, const float* x, size_t n);

// Values of about the normal distribution (a sum of four uniform ones), the same on all machines.
std::vector<float> random_values(int64_t count, uint64_t seed, double deviation = 1);

// Between f32 and the bytes of f32, f16, bf16, i8 (whole numbers) or fp8. Throws
// std::invalid_argument for another type.
void to_bytes(std::byte* to, const float* from, Dtype dtype, size_t n);
void to_floats(float* to, const std::byte* from, Dtype dtype, size_t n);

// The largest |found - expected| / (scale + |expected|), and its place; 1e30 where that is no
// number. -1 if there are no values.
struct WorstError {
    double error = -1;
    size_t place = 0;
};
WorstError worst_error(const float* found, const float* expected, size_t n, double scale);
WorstError worst_error(const float* found, const double* expected, size_t n, double scale);

}  // namespace hark::test
