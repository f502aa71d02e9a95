#include "harness.h"

#include <algorithm>
#include <cstdio>

#include "core/half.h"
#include "kernels/cpu/cpu.h"
#include "kernels/linear/onednn.h"
#include "operations/speed/memory_speed.h"

namespace hark::bench {
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

// Empty: not known.
std::string known(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return value > 0 ? text : "";
}

}  // namespace

double Limits::read_bandwidth(double bytes) {
    double& known = bandwidths_[static_cast<int64_t>(bytes) >> 20];
    if (!(known > 0)) known = hark::read_bandwidth(threads_, bytes);
    return known;
}

double Limits::product_speed(Dtype dtype) {
    if (dtype == Dtype::bf16 && !cpu_kernels().has_bf16) dtype = Dtype::f32;
    if (dtype == Dtype::i8 && !cpu_kernels().has_int8) dtype = Dtype::f32;
    if (dtype == Dtype::f16) dtype = Dtype::f32;
    if (speeds_.count(dtype)) return speeds_[dtype];
    const std::vector<float> values = normal_values(2048 * 2048, 1);
    if (dtype == Dtype::bf16) {
        std::vector<bf16_t> narrow(values.size());
        for (size_t i = 0; i < values.size(); ++i) narrow[i] = to_bf16(values[i]);
        return speeds_[dtype] = speed_of_product(threads_, narrow);
    }
    if (dtype == Dtype::i8) {
        std::vector<int8_t> narrow(values.size());
        for (size_t i = 0; i < values.size(); ++i)
            narrow[i] = static_cast<int8_t>(std::clamp(values[i] * 30, -127.0f, 127.0f));
        return speeds_[dtype] = speed_of_product(threads_, narrow);
    }
    return speeds_[dtype] = speed_of_product(threads_, values);
}

Report::Report(Limits& limits, bool heading) : limits_(limits) {
    if (heading) std::printf("what\tdtype\tthreads\tms\trate\tunit\tlimit\tfraction\tgflop\tmb\n");
}

void Report::bytes(const std::string& what, const std::string& dtype, double ms, double bytes,
                   double flops) {
    const double rate = bytes / ms * 1e-6, limit = limits_.read_bandwidth(bytes);
    std::printf("%s\t%s\t%d\t%.4f\t%.1f\tGB/s\t%.1f\t%.2f\t%s\t%s\n", what.c_str(), dtype.c_str(),
                limits_.threads(), ms, rate, limit, rate / limit, known(flops * 1e-9).c_str(),
                known(bytes * 1e-6).c_str());
    std::fflush(stdout);
}

void Report::flops(const std::string& what, const std::string& dtype, double ms, double flops,
                   Dtype product, double bytes) {
    const double rate = flops / ms * 1e-6, limit = limits_.product_speed(product);
    std::printf("%s\t%s\t%d\t%.4f\t%.1f\tGFLOP/s\t%.1f\t%.2f\t%s\t%s\n", what.c_str(),
                dtype.c_str(), limits_.threads(), ms, rate, limit, rate / limit,
                known(flops * 1e-9).c_str(), known(bytes * 1e-6).c_str());
    std::fflush(stdout);
}

void Report::figure(const std::string& what, const std::string& dtype, double ms, double rate,
                    const char* unit) {
    std::printf("%s\t%s\t%d\t%.4f\t%.1f\t%s\t\t\t\t\n", what.c_str(), dtype.c_str(),
                limits_.threads(), ms, rate, unit);
    std::fflush(stdout);
}

}  // namespace hark::bench
