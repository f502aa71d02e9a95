// Filters on the logits of the next token: pure functions that change logits, or set those of
// excluded tokens to -infinity. At least one token stays.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "text/constrain/token_masks.h"

namespace hark::gpt {

// Source, if no other is named: transformers generation/logits_process.py.

using LogitBias = std::vector<std::pair<int32_t, double>>;  // token, what is added to its logit

// Throws Error if the mask has none of the tokens below `vocabulary`.
void require_any(const TokenMask& allowed, size_t vocabulary);
// Keeps the tokens of the mask. Throws Error if it has none of the row.
void keep_allowed(std::span<float> logits, const TokenMask& allowed);
// Tokens outside the row are skipped.
void add_logit_bias(std::span<float> logits, const LogitBias& bias);
// Subtracts presence + frequency * count from tokens that `text` has count times. Source: OpenAI's
// API reference, "presence and frequency penalties".
void penalize_counts(std::span<float> logits, std::span<const int32_t> text, double presence,
                     double frequency);

struct DryOptions {
    double multiplier = 0;  // 0: no penalty
    double base = 1.75;
    int64_t allowed_length = 2;
    std::vector<int32_t> breakers;  // sorted; no match reaches across one of these tokens

    bool operator==(const DryOptions&) const = default;
};
// If the end of `tokens` has occurred before, n tokens long, subtracts multiplier * base^(n -
// allowed_length), at most 1e6, from the token that followed; not if n < allowed_length.
// Source: "DRY", text-generation-webui pull request 5677.
void penalize_loops(std::span<float> logits, std::span<const int32_t> tokens,
                    const DryOptions& options);

void apply_temperature(std::span<float> logits, double temperature);
// Keeps the k largest logits, and those equal to the smallest of them.
void keep_top_k(std::span<float> logits, int64_t k);
// Keeps the tokens whose surprise is nearest to the entropy, with probabilities that sum to `mass`
// (Meister et al. 2022, "Locally typical sampling").
void keep_typical(std::span<float> logits, double mass);
// Keeps the fewest tokens whose probabilities sum to p (Holtzman et al. 2020, section 3.1).
void keep_top_p(std::span<float> logits, double p);
// Keeps tokens at least min_p times as probable as the most probable one.
void keep_min_p(std::span<float> logits, double min_p);
// Of the tokens of at least this probability keeps only the least probable one, of equal ones that
// with the highest id. Source: "XTC", text-generation-webui pull request 6335.
void exclude_top_choices(std::span<float> logits, double threshold);
// Keeps tokens of at most this surprise, -log2 of the probability, and the most probable one.
// Source: Basu et al. 2021, "Mirostat", algorithm 2.
void keep_surprise(std::span<float> logits, double most);

}  // namespace hark::gpt
