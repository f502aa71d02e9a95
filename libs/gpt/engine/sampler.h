// Choosing the next token: filters on logits, then a draw.
#pragma once

#include <cstdint>
#include <span>

#include "core/cli.h"
#include "core/random.h"

namespace hark::gpt {

// The filters: pure functions that set the logits of excluded tokens to -infinity. At least one
// token stays. Source of each: transformers generation/logits_process.py.

void apply_temperature(std::span<float> logits, double temperature);
// Keeps the k largest logits, and those equal to the smallest of them.
void keep_top_k(std::span<float> logits, int64_t k);
// Keeps the fewest tokens whose probabilities sum to p (Holtzman et al. 2020, section 3.1).
void keep_top_p(std::span<float> logits, double p);
// Keeps tokens at least min_p times as probable as the most probable one.
void keep_min_p(std::span<float> logits, double min_p);

// The natural logarithm of the token's probability under softmax(logits).
double log_probability(std::span<const float> logits, int32_t token);

struct SamplerOptions {
    double temperature = 0.8;
    int64_t top_k = 40;   // 0: all
    double top_p = 0.95;  // 1: all
    double min_p = 0;     // 0: all
    double repetition_penalty = 1;

    void flags(Flags& flags);
};

// Applies the options' filters in transformers' order: repetition penalty, temperature, top-k,
// top-p, min-p. Filters without effect are skipped; temperature 0 skips all but the penalty.
void process_logits(std::span<float> logits, std::span<const int32_t> history,
                    const SamplerOptions& options);

// Filters the logits in place, then takes the argmax (temperature 0) or draws.
int32_t sample(std::span<float> logits, std::span<const int32_t> history,
               const SamplerOptions& options, Random& random);

}  // namespace hark::gpt
