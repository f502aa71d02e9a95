#include "core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hark {
namespace {

TEST(Half, FitsWhatComesBackTheSame) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float value = to_float(f16_t{static_cast<uint16_t>(bits)});
        if (std::isnan(value)) continue;
        EXPECT_TRUE(fits_f16(value)) << value;
        for (const float toward : {-1e30f, 1e30f}) {
            const float next = std::nextafter(value, toward);
            EXPECT_EQ(fits_f16(next), to_float(to_f16(next)) == next) << next;
        }
    }
    for (const float value : {1e-30f, 65520.0f, 1e30f, std::numeric_limits<float>::quiet_NaN()})
        EXPECT_FALSE(fits_f16(value)) << value;
}

}  // namespace
}  // namespace hark
