#include "operations/speed/timing.h"

#include <algorithm>
#include <chrono>
#include <random>

namespace hark {
namespace {

double now_ms() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(time).count();
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

std::vector<float> normal_values(int64_t count, uint64_t seed) {
    std::minstd_rand generator(static_cast<unsigned>(seed + 1));
    std::normal_distribution<float> normal;
    // A block drawn once and repeated, shifted: drawing hundreds of millions would take minutes.
    std::vector<float> block(1 << 16), values(static_cast<size_t>(count));
    for (float& value : block) value = normal(generator);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = block[(i + 7919 * (i >> 16)) & (block.size() - 1)];
    return values;
}

}  // namespace hark
