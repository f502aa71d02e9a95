#include "support/values.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "core/fp8.h"
#include "core/half.h"
#include "support/recordings.h"

namespace hark::test {
namespace {

template <class A, class B>
double sum_of_products(const A* a, const B* b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}

template <class X>
void add_products(double* to, double factor, const X* x, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] += factor * static_cast<double>(x[i]);
}

template <class Expected>
WorstError worst_of(const float* found, const Expected* expected, size_t n, double scale) {
    WorstError worst;
    for (size_t i = 0; i < n; ++i) {
        const double wanted = static_cast<double>(expected[i]);
        double error = std::abs(found[i] - wanted) / (scale + std::abs(wanted));
        if (!(error <= 1e30)) error = 1e30;  // not a number either
        if (error > worst.error) worst = {error, i};
    }
    return worst;
}

}  // namespace

double dot(const double* a, const double* b, size_t n) { return sum_of_products(a, b, n); }
double dot(const double* a, const float* b, size_t n) { return sum_of_products(a, b, n); }
double dot(const float* a, const float* b, size_t n) { return sum_of_products(a, b, n); }

void add_scaled(double* to, double factor, const double* x, size_t n) {
    add_products(to, factor, x, n);
}
void add_scaled(double* to, double factor, const float* x, size_t n) {
    add_products(to, factor, x, n);
}

std::vector<float> random_values(int64_t count, uint64_t seed, double deviation) {
    SplitMix64 generator(seed);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
        const uint64_t bits = generator.draw();
        double sum = -2;
        for (int i = 0; i < 4; ++i) sum += static_cast<double>((bits >> (16 * i)) & 0xffff) / 65536;
        value = static_cast<float>(sum * 1.7320508 * deviation);
    }
    return values;
}

void to_bytes(std::byte* to, const float* from, Dtype dtype, size_t n) {
    const auto store = [&](auto convert) {
        for (size_t i = 0; i < n; ++i) {
            const auto value = convert(from[i]);
            std::memcpy(to + i * sizeof value, &value, sizeof value);
        }
    };
    switch (dtype) {
        case Dtype::f32:
            return store([](float x) { return x; });
        case Dtype::f16:
            return store([](float x) { return to_f16(x); });
        case Dtype::bf16:
            return store([](float x) { return to_bf16(x); });
        case Dtype::i8:
            return store([](float x) { return static_cast<int8_t>(x); });
        case Dtype::fp8:
            return store([](float x) { return to_fp8(x); });
        default:
            throw std::invalid_argument("values of this type are not stored");
    }
}

void to_floats(float* to, const std::byte* from, Dtype dtype, size_t n) {
    const auto load = [&]<class T>(T value) {
        for (size_t i = 0; i < n; ++i) {
            std::memcpy(&value, from + i * sizeof value, sizeof value);
            to[i] = to_float(value);
        }
    };
    switch (dtype) {
        case Dtype::f32:
            return load(float());
        case Dtype::f16:
            return load(f16_t());
        case Dtype::bf16:
            return load(bf16_t());
        case Dtype::fp8:
            return load(fp8_t());
        default:
            throw std::invalid_argument("values of this type are not loaded");
    }
}

WorstError worst_error(const float* found, const float* expected, size_t n, double scale) {
    return worst_of(found, expected, n, scale);
}
WorstError worst_error(const float* found, const double* expected, size_t n, double scale) {
    return worst_of(found, expected, n, scale);
}

}  // namespace hark::test
