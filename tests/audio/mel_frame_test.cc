#include "audio/mel_frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "support/recordings.h"

namespace hark::mel_frame {
namespace {

TEST(MelFrame, PowerIsTheDirectSum) {
    test::SplitMix64 noise(3);
    double samples[kWindow];
    for (double& x : samples) x = static_cast<double>(noise.draw() >> 11) * 0x1p-52 - 1;
    Root roots[kWindow];
    for (int k = 0; k < kWindow; ++k) {
        const double angle = 2 * std::numbers::pi * k / kWindow;
        roots[k] = {std::cos(angle), -std::sin(angle)};
    }
    Complex<double> a[kPoints], b[kPoints];
    const auto pair = [&](int i) { return Complex<double>{samples[2 * i], samples[2 * i + 1]}; };
    const auto point = [&](int i) { return a[i]; };
    for (int i = 0; i < kItems5; ++i) stage5<200, 1>(i, roots, pair, a);
    for (int i = 0; i < kItems5; ++i) stage5<40, 5>(i, roots, point, b);
    for (int i = 0; i < kItems8; ++i) stage8(i, b, a);
    double power[kBins];
    for (int k = 0; k < kItemsPower; ++k) power_of(k, a, roots[k], power);
    for (int k = 0; k < kBins; ++k) {
        long double re = 0, im = 0;
        for (int n = 0; n < kWindow; ++n) {
            const long double angle = 2 * std::numbers::pi_v<long double> *
                                      static_cast<long double>(k * n % kWindow) / kWindow;
            re += samples[n] * std::cos(angle);
            im -= samples[n] * std::sin(angle);
        }
        const double expected = static_cast<double>(4 * (re * re + im * im));
        EXPECT_NEAR(power[k], expected, 1e-12 * (expected + kWindow)) << "bin " << k;
    }
}

TEST(MelFrame, LogarithmIsTheLibrarys) {
    double worst = 0;
    const auto check = [&](double x) {
        const double expected = std::log10(x);
        worst = std::max(worst, std::abs(log10_of<double, uint64_t>(x) - expected) /
                                    std::max(1.0, std::abs(expected)));
    };
    test::SplitMix64 numbers(4);
    for (int i = 0; i < 100000; ++i)  // 1e-10 to 1e85
        check(std::pow(10, static_cast<double>(numbers.draw() >> 11) * 0x1p-53 * 95 - 10));
    for (double x : {1.0, 2.0, 10.0, kLeast, std::sqrt(2.0), std::sqrt(0.5),
                     std::nextafter(1.0, 0.0), std::nextafter(1.0, 2.0)})
        check(x);
    EXPECT_LE(worst, 1e-15);
}

}  // namespace
}  // namespace hark::mel_frame
