#include "gpt/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/sampling/distribution.h"
#include "kernels/sampling/filters.h"

namespace hark::gpt {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

}  // namespace

void apply_temperature(std::span<float> logits, double temperature) {
    for (float& logit : logits) logit = tempered(logit, static_cast<float>(temperature));
}

void keep_top_k(std::span<float> logits, int64_t k) {
    if (k >= static_cast<int64_t>(logits.size())) return;
    std::vector<float> order(logits.begin(), logits.end());
    std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), std::greater<>());
    const float smallest = order[k - 1];
    for (float& logit : logits)
        if (logit < smallest) logit = kNever;
}

void keep_top_p(std::span<float> logits, double p) {
    std::vector<int32_t> order;
    for (size_t id = 0; id < logits.size(); ++id)
        if (logits[id] > kNever) order.push_back(static_cast<int32_t>(id));
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
    const double total = log_sum_exp(logits);
    double reached = 0;
    for (size_t i = 0; i < order.size(); ++i) {
        const double probability = std::exp(logits[order[i]] - total);
        if (i > 0 && reached >= p) logits[order[i]] = kNever;
        reached += probability;
    }
}

void keep_min_p(std::span<float> logits, double min_p) {
    // p >= min_p * p_max, in logarithms.
    const float largest = *std::max_element(logits.begin(), logits.end());
    const double log_min_p = std::log(min_p);
    for (float& logit : logits)
        if (!is_near(logit, largest, log_min_p)) logit = kNever;
}

double log_probability(std::span<const float> logits, int32_t token) {
    return logits[token] - log_sum_exp(logits);
}

void SamplerOptions::flags(Flags& flags) {
    flags.add("temperature", temperature, "T sampling temperature; 0: the likeliest token", 0, 100)
        .essential()
        .own_variable();
    flags.add("top-k", top_k, "K draw from the K likeliest tokens; 0: from all", 0, 1 << 30);
    flags.add("top-p", top_p, "P draw from the likeliest tokens of probability P", 1e-9, 1)
        .details("The fewest tokens whose probabilities have the sum P; 1: all.");
    flags.add("min-p", min_p, "P drop tokens below P times the likeliest; 0: none", 0, 1);
    flags
        .add("repetition-penalty", repetition_penalty, "R penalty of tokens that are in the text",
             0.01, 100)
        .details("Their logits are divided by R, or multiplied if negative; 1: no penalty.");
}

void process_logits(std::span<float> logits, std::span<const int32_t> history,
                    const SamplerOptions& options) {
    if (options.repetition_penalty != 1)
        penalize_repetition(logits, history, options.repetition_penalty);
    if (options.temperature == 0) return;
    if (options.temperature != 1) apply_temperature(logits, options.temperature);
    if (options.top_k > 0) keep_top_k(logits, options.top_k);
    if (options.top_p < 1) keep_top_p(logits, options.top_p);
    if (options.min_p > 0) keep_min_p(logits, options.min_p);
}

int32_t sample(std::span<float> logits, std::span<const int32_t> history,
               const SamplerOptions& options, Random& random) {
    process_logits(logits, history, options);
    return options.temperature == 0 ? argmax(logits) : draw(logits, 1, random.uniform());
}

}  // namespace hark::gpt
