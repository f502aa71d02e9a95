#include "gpt/families/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace hark::gpt {
namespace {

using std::numbers::pi;

// theta^(-2 i / rotary), in float32 as transformers computes it.
std::vector<float> plain(double theta, int64_t rotary) {
    std::vector<float> frequencies;
    for (int64_t i = 0; i < rotary / 2; ++i) {
        const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary);
        frequencies.push_back(1.0f / static_cast<float>(std::pow(theta, exponent)));
    }
    return frequencies;
}

// _compute_llama3_parameters
void scale_llama3(std::vector<float>& frequencies, const RopeSettings& s, int64_t original) {
    const double low = static_cast<double>(original) / s.low_freq_factor;
    const double high = static_cast<double>(original) / s.high_freq_factor;
    for (float& f : frequencies) {
        const double wavelength = 2 * pi / f;
        if (wavelength < high) continue;
        const double smooth = (static_cast<double>(original) / wavelength - s.low_freq_factor) /
                              (s.high_freq_factor - s.low_freq_factor);
        const double scaled = f / s.factor;
        f = static_cast<float>(wavelength > low ? scaled : (1 - smooth) * scaled + smooth * f);
    }
}

// _compute_yarn_parameters
void scale_yarn(RopeTable& table, const RopeSettings& s, int64_t rotary, int64_t original) {
    const auto dimension = [&](double turns) {
        return static_cast<double>(rotary) *
               std::log(static_cast<double>(original) / (turns * 2 * pi)) / (2 * std::log(s.theta));
    };
    double low = dimension(s.beta_fast), high = dimension(s.beta_slow);
    if (s.truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0), high = std::min(high, static_cast<double>(rotary - 1));
    if (low == high) high += 0.001;
    for (size_t i = 0; i < table.frequencies.size(); ++i) {
        const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        const double f = table.frequencies[i];
        table.frequencies[i] = static_cast<float>(f / s.factor * ramp + f * (1 - ramp));
    }
    if (s.attention_factor > 0)
        table.scale = static_cast<float>(s.attention_factor);
    else if (s.mscale != 0 && s.mscale_all_dim != 0)
        table.scale = static_cast<float>(yarn_scale(s.factor, s.mscale) /
                                         yarn_scale(s.factor, s.mscale_all_dim));
    else
        table.scale = static_cast<float>(yarn_scale(s.factor, 1));
}

// 1 / (factor_i * theta^(2 i / rotary)), _compute_longrope_parameters
std::vector<float> divided(const std::vector<float>& frequencies, const std::vector<double>& by,
                           const std::string& where) {
    require(by.size() == frequencies.size(), where, ": expected ", frequencies.size(),
            " factors of rotary frequencies, found ", by.size());
    std::vector<float> result;
    for (size_t i = 0; i < by.size(); ++i) {
        require(by[i] > 0, where, ": expected factors of rotary frequencies above 0, found ",
                by[i]);
        result.push_back(static_cast<float>(frequencies[i] / by[i]));
    }
    return result;
}

void scale_longrope(RopeTable& table, const RopeSettings& s, int64_t n_positions, int64_t original,
                    const std::string& where) {
    table.long_frequencies = divided(table.frequencies, s.long_factor, where);
    table.frequencies = divided(table.frequencies, s.short_factor, where);
    table.original_length = original;
    const double factor = static_cast<double>(n_positions) / static_cast<double>(original);
    if (s.attention_factor > 0)
        table.scale = static_cast<float>(s.attention_factor);
    else if (factor > 1)
        table.scale = static_cast<float>(
            std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original))));
}

}  // namespace

double yarn_scale(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

RopeTable rope_table(const RopeSettings& s, int64_t rotary, int64_t n_positions,
                     const std::string& where) {
    require(rotary > 0 && rotary % 2 == 0, where, ": expected an even number of rotary channels, ",
            "found ", rotary);
    RopeTable table{.frequencies = plain(s.theta, rotary)};
    const int64_t original = s.original_length > 0 ? s.original_length : n_positions;
    if (!s.divisors.empty()) {
        table.frequencies = divided(table.frequencies, s.divisors, where);
    } else if (s.type == "linear") {
        for (float& f : table.frequencies) f = static_cast<float>(f / s.factor);
    } else if (s.type == "llama3") {
        scale_llama3(table.frequencies, s, original);
    } else if (s.type == "yarn") {
        scale_yarn(table, s, rotary, original);
    } else if (s.type == "longrope") {
        scale_longrope(table, s, n_positions, original, where);
    } else {
        require(s.type == "default", where,
                ": expected rope scaling of type default, linear, llama3, yarn or longrope, found ",
                s.type);
    }
    return table;
}

}  // namespace hark::gpt
