// Scales of quantised blocks by search, on the CPU alone: those with the least sum of squared
// errors among a few trials. A trial rounds the values of a group to levels by a trial scale; for
// these levels least squares give the scale, and the minimum if there is one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/quant/make_blocks.h"

namespace hark {

// The levels first, first + 1, ... last; `index` counts them from 0.
template <int first, int last>
struct LinearLevels {
    static constexpr float kFirst = first, kLast = last;
    static int nearest(float x) {
        return static_cast<int>(std::clamp(x, kFirst, kLast) - kFirst + 0.5f);
    }
    static float level(int index) { return static_cast<float>(index + first); }
};

// value = scale * level + min
struct GroupScale {
    float scale = 0, min = 0;
    double error = 0;  // sum of squares
};

// Error of the values with this scale and min, each at its nearest level.
template <class Levels>
double group_error(const float* x, int n, float scale, float min) {
    const float by = inverse_scale(scale);
    float sum = 0;
    for (int i = 0; i < n; ++i) {
        const float off = scale * Levels::level(Levels::nearest((x[i] - min) * by)) + min - x[i];
        sum += off * off;
    }
    return sum;
}

// Least squares for the levels that the values get by this scale and min. With has_min the
// result's min is at most 0, as blocks store it; without it is 0.
template <class Levels, bool has_min>
GroupScale fit_levels(const float* x, int n, float scale, float min) {
    const float by = inverse_scale(scale);
    float l1 = 0, l2 = 0, x1 = 0, x2 = 0, xl = 0;
    for (int i = 0; i < n; ++i) {
        const float level = Levels::level(Levels::nearest((x[i] - min) * by));
        l2 += level * level, x2 += x[i] * x[i], xl += x[i] * level;
        if (has_min) l1 += level, x1 += x[i];
    }
    const double divisor = double{l2} * n - double{l1} * l1;
    double a = 0, b = 0;
    if (has_min && divisor > 0)
        a = (double{xl} * n - double{l1} * x1) / divisor, b = (x1 - a * l1) / n;
    if (!has_min || divisor <= 0 || b > 0) a = l2 > 0 ? double{xl} / l2 : 0, b = 0;
    const double error = x2 - 2 * a * xl - 2 * b * x1 + a * a * l2 + 2 * a * b * l1 + n * b * b;
    return {static_cast<float>(a), static_cast<float>(b), error};
}

// The best of the trials, fitted once more.
template <class Levels, bool has_min, class Trials>
GroupScale best_of(const float* x, int n, const Trials& trials) {
    GroupScale best{0, 0, std::numeric_limits<double>::infinity()};
    trials([&](float scale, float min) {
        const GroupScale fit = fit_levels<Levels, has_min>(x, n, scale, min);
        if (fit.error < best.error) best = fit;
    });
    return fit_levels<Levels, has_min>(x, n, best.scale, best.min);
}

// value = scale * level. The largest magnitude is put near either end of the levels.
template <class Levels>
GroupScale best_scale(const float* x, int n) {
    const float largest =
        *std::max_element(x, x + n, [](float a, float b) { return std::abs(a) < std::abs(b); });
    if (largest == 0) return {};
    const float step = (Levels::kLast - Levels::kFirst) / 100;
    return best_of<Levels, false>(x, n, [&](const auto& attempt) {
        for (const float end : {Levels::kFirst, Levels::kLast})
            for (int i = -5; i <= 10; ++i)
                attempt(largest / (end + std::copysign(step * static_cast<float>(i), end)), 0.0f);
    });
}

// value = scale * level + min, levels from 0. The range of the values takes about all levels.
template <class Levels>
GroupScale best_scale_and_min(const float* x, int n) {
    const auto [first, last] = std::minmax_element(x, x + n);
    const float low = std::min(*first, 0.0f), range = *last - low;
    if (range <= 0) return {0, low, 0};
    return best_of<Levels, true>(x, n, [&](const auto& attempt) {
        for (int i = -10; i <= 10; ++i)
            attempt(range / (Levels::kLast + 0.1f * static_cast<float>(i)), low);
    });
}

// A block of `groups` of `size` values each: value = d * scale * level - dmin * min, with whole
// scales and minima.
template <int groups, int size>
struct FoundBlock {
    float d = 0, dmin = 0;
    int scales[groups] = {}, mins[groups] = {};
    uint8_t quants[groups * size] = {};  // indices of levels
};

// The scale and the minimum of group g: the best of the whole numbers next to the wanted ones.
template <class Levels, bool has_min, int groups, int size>
void choose_group(FoundBlock<groups, size>& block, const float* x, int g, const GroupScale& wanted,
                  int first, int last) {
    const auto near = [](float wanted, float unit, int lowest, int highest) {
        const float by = inverse_scale(unit);
        return static_cast<int>(std::nearbyint(
            std::clamp(wanted * by, static_cast<float>(lowest), static_cast<float>(highest))));
    };
    const int s0 = near(wanted.scale, block.d, first, last);
    const int m0 = has_min ? near(-wanted.min, block.dmin, 0, last) : 0;
    double least = std::numeric_limits<double>::infinity();
    for (int s = std::max(s0 - 1, first); s <= std::min(s0 + 1, last); ++s)
        for (int m = std::max(m0 - 1, 0); m <= (has_min ? std::min(m0 + 1, last) : 0); ++m) {
            const double error = group_error<Levels>(x, size, block.d * static_cast<float>(s),
                                                     -block.dmin * static_cast<float>(m));
            if (error >= least) continue;
            least = error;
            block.scales[g] = s;
            block.mins[g] = m;
        }
    const float by = inverse_scale(block.d * static_cast<float>(block.scales[g]));
    const float min = -block.dmin * static_cast<float>(block.mins[g]);
    for (int i = 0; i < size; ++i)
        block.quants[g * size + i] = static_cast<uint8_t>(Levels::nearest((x[i] - min) * by));
}

// A block's scales from `first` to `last`; minima, if there are any, from 0 to `last`.
template <class Levels, bool has_min, int groups, int size>
FoundBlock<groups, size> search_block(const float* x, int first, int last) {
    GroupScale wanted[groups];
    float largest = 0, lowest = 0;
    for (int g = 0; g < groups; ++g) {
        wanted[g] = has_min ? best_scale_and_min<Levels>(x + g * size, size)
                            : best_scale<Levels>(x + g * size, size);
        if (std::abs(wanted[g].scale) > std::abs(largest)) largest = wanted[g].scale;
        lowest = std::min(lowest, wanted[g].min);
    }
    FoundBlock<groups, size> block;
    block.d = as_half(largest / static_cast<float>(first < 0 ? first : last));
    block.dmin = as_half(-lowest / static_cast<float>(last));
    for (int g = 0; g < groups; ++g)
        choose_group<Levels, has_min>(block, x + g * size, g, wanted[g], first, last);
    return block;
}

// Stores the index of value i of 128 or 256: two bits in the layout of two_bits().
inline void store_two_bits(uint8_t* to, int i, int bits) {
    uint8_t& byte = to[i / 128 * 32 + i % 32];
    byte = static_cast<uint8_t>(byte | bits << i % 128 / 32 * 2);
}

}  // namespace hark
