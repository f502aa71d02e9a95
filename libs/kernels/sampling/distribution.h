// The distribution over the next token that one row of logits stands for, on the host.
// A token that is ruled out has the logit -infinity; at least one is finite where not said
// otherwise.
#pragma once

#include <cstdint>
#include <span>

namespace hark {

// log(sum(exp(x))), natural; -infinity where all of x are, or there are none.
double log_sum_exp(std::span<const float> x);

// The largest logit's id, the lowest of equal ones.
int32_t argmax(std::span<const float> logits);

// A token drawn from softmax(logits / temperature) by u in [0, 1); temperature > 0.
int32_t draw(std::span<const float> logits, double temperature, double u);

// Logits of the tokens in `history`, once each, are divided by `penalty` where positive and
// multiplied where negative. Ids outside the row are left out. Source: Keskar et al. 2019,
// section 4.1; transformers generation/logits_process.py, RepetitionPenaltyLogitsProcessor.
void penalize_repetition(std::span<float> logits, std::span<const int32_t> history, double penalty);

}  // namespace hark
