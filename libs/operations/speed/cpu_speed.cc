#include "operations/speed/cpu_speed.h"

#include <algorithm>
#include <vector>

#include "core/half.h"
#include "kernels/cpu/cpu.h"
#include "kernels/linear/onednn.h"
#include "operations/speed/timing.h"

namespace hark {
namespace {

template <class T>
double speed_of_product(int threads, const std::vector<T>& values) {
    constexpr int64_t kSize = 2048;
    std::vector<float> f32(std::is_same_v<T, int8_t> ? 0 : kSize * kSize);
    std::vector<int32_t> s32(std::is_same_v<T, int8_t> ? kSize * kSize : 0);
    const double ms = median_ms([&] {
        if constexpr (std::is_same_v<T, int8_t>)
            onednn::multiply(threads, s32.data(), kSize, values.data(), kSize, values.data(), kSize,
                             kSize, kSize);
        else if constexpr (std::is_same_v<T, bf16_t>)
            onednn::multiply(threads, f32.data(), kSize, values.data(), kSize, values.data(), kSize,
                             kSize, kSize);
        else
            onednn::multiply(threads, f32.data(), kSize, {values.data(), kSize},
                             {values.data(), kSize, true}, kSize, kSize, kSize, false);
    });
    return 2.0 * kSize * kSize * kSize / ms * 1e-6;
}

}  // namespace

double cpu_product_speed(int threads, Dtype dtype) {
    const std::vector<float> values = normal_values(2048 * 2048, 1);
    if (dtype == Dtype::bf16 && cpu_kernels().has_bf16) {
        std::vector<bf16_t> narrow(values.size());
        for (size_t i = 0; i < values.size(); ++i) narrow[i] = to_bf16(values[i]);
        return speed_of_product(threads, narrow);
    }
    if (dtype == Dtype::i8 && cpu_kernels().has_int8) {
        std::vector<int8_t> narrow(values.size());
        for (size_t i = 0; i < values.size(); ++i)
            narrow[i] = static_cast<int8_t>(std::clamp(values[i] * 30, -127.0f, 127.0f));
        return speed_of_product(threads, narrow);
    }
    return speed_of_product(threads, values);
}

}  // namespace hark
