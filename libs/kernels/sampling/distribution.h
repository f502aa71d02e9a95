// The distribution over the next token for one row of logits, on the host. An excluded token has
// the logit -infinity; at least one logit is finite unless stated otherwise.
#pragma once

#include <cstdint>
#include <span>

namespace hark {

// log(sum(exp(x))), natural; -infinity if all of x are, or if x is empty.
double log_sum_exp(std::span<const float> x);

// The id of the largest logit; of equal logits the lowest id.
int32_t argmax(std::span<const float> logits);

// A token drawn from softmax(logits / temperature) with u in [0, 1); temperature > 0.
int32_t draw(std::span<const float> logits, double temperature, double u);

// Divides the positive logits of the tokens in `history` by `penalty` and multiplies the negative
// ones by it, once per token. Ids outside the row are skipped. Source: Keskar et al. 2019, section
// 4.1; transformers generation/logits_process.py, RepetitionPenaltyLogitsProcessor.
void penalize_repetition(std::span<float> logits, std::span<const int32_t> history, double penalty);

}  // namespace hark
