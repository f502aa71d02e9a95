// Times of work, and values to work on.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace hark {

// The median of the milliseconds that calls of `work` take: at least `runs` of them and at least
// `seconds` in all, after as many that warm up as take a fifth of that.
double median_ms(const std::function<void()>& work, int runs = 5, double seconds = 0.4);

// Random values, normally distributed with deviation 1: zeros would be faster than real data.
std::vector<float> normal_values(int64_t count, uint64_t seed);

}  // namespace hark
