#include "harness.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

#include "core/half.h"
#include "kernels/cpu/cpu.h"
#include "kernels/linear/onednn.h"

namespace hark::bench {
namespace {

double now_ms() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(time).count();
}

// In the widest vectors that the processor has, and asking ahead.
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
uint64_t
read_words(const uint64_t* words, int64_t count) {
    uint64_t sums[32] = {};
    for (int64_t i = 0; i < count; i += 32) {
        for (int line = 0; line < 32; line += 8) __builtin_prefetch(words + i + 512 + line);
        for (int j = 0; j < 32; ++j) sums[j] ^= words[i + j];
    }
    uint64_t sum = 0;
    for (const uint64_t part : sums) sum ^= part;
    return sum;
}

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

double median_ms(const std::function<void()>& work, int runs, double seconds) {
    const double begin = now_ms();
    do {
        work();
    } while (now_ms() - begin < seconds * 200);
    std::vector<double> times;
    const double start = now_ms();
    while (std::ssize(times) < runs || now_ms() - start < seconds * 1000) {
        const double before = now_ms();
        work();
        times.push_back(now_ms() - before);
    }
    std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
    return times[times.size() / 2];
}

double Limits::read_bandwidth(double bytes) {
    constexpr int64_t kPiece = 4096;  // words: 32 KiB
    const int64_t pieces = std::max<int64_t>(static_cast<int64_t>(bytes / (8 * kPiece)), 8);
    double& known = bandwidths_[pieces];
    if (known > 0) return known;
    std::vector<uint64_t> memory(static_cast<size_t>(pieces * kPiece));
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (int64_t i = 0; i < pieces; ++i)
        for (int64_t j = i * kPiece; j < (i + 1) * kPiece; ++j)
            memory[j] = static_cast<uint64_t>(j) * 0x9E3779B97F4A7C15u;
    volatile uint64_t seen = 0;
    const double ms = median_ms([&] {
        uint64_t sum = 0;
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(^ : sum)
        for (int64_t i = 0; i < pieces; ++i) sum ^= read_words(memory.data() + i * kPiece, kPiece);
        seen = sum;
    });
    return known = static_cast<double>(pieces * kPiece) * 8 / ms * 1e-6;
}

double Limits::product_speed(Dtype dtype) {
    if (dtype == Dtype::bf16 && !cpu_kernels().has_bf16) dtype = Dtype::f32;
    if (dtype == Dtype::i8 && !cpu_kernels().has_int8) dtype = Dtype::f32;
    if (dtype == Dtype::f16) dtype = Dtype::f32;
    if (speeds_.count(dtype)) return speeds_[dtype];
    const std::vector<float> values = random_values(2048 * 2048, 1);
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
    if (heading) std::printf("what\tdtype\tthreads\tms\trate\tunit\tlimit\tfraction\n");
}

void Report::bytes(const std::string& what, const std::string& dtype, double ms, double bytes) {
    const double rate = bytes / ms * 1e-6, limit = limits_.read_bandwidth(bytes);
    std::printf("%s\t%s\t%d\t%.4f\t%.1f\tGB/s\t%.1f\t%.2f\n", what.c_str(), dtype.c_str(),
                limits_.threads(), ms, rate, limit, rate / limit);
    std::fflush(stdout);
}

void Report::flops(const std::string& what, const std::string& dtype, double ms, double flops,
                   Dtype product) {
    const double rate = flops / ms * 1e-6, limit = limits_.product_speed(product);
    std::printf("%s\t%s\t%d\t%.4f\t%.1f\tGFLOP/s\t%.1f\t%.2f\n", what.c_str(), dtype.c_str(),
                limits_.threads(), ms, rate, limit, rate / limit);
    std::fflush(stdout);
}

void Report::figure(const std::string& what, const std::string& dtype, double ms, double rate,
                    const char* unit) {
    std::printf("%s\t%s\t%d\t%.4f\t%.1f\t%s\t\t\n", what.c_str(), dtype.c_str(), limits_.threads(),
                ms, rate, unit);
    std::fflush(stdout);
}

std::vector<float> random_values(int64_t count, uint64_t seed) {
    std::minstd_rand generator(static_cast<unsigned>(seed + 1));
    std::normal_distribution<float> normal;
    // A block drawn once and repeated, shifted: drawing hundreds of millions would take minutes.
    std::vector<float> block(1 << 16), values(static_cast<size_t>(count));
    for (float& value : block) value = normal(generator);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = block[(i + 7919 * (i >> 16)) & (block.size() - 1)];
    return values;
}

}  // namespace hark::bench
