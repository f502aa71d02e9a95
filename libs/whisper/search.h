// How the next token is chosen among those the rules leave.
// Source: openai/whisper decoding.py, GreedyDecoder and MaximumLikelihoodRanker.
#pragma once

#include <cstdint>
#include <span>

#include "core/random.h"
#include "whisper/row.h"

namespace hark::whisper {

// The likeliest token where temperature is 0, else one drawn from softmax(logits / temperature).
// `logits` (n_vocab) have been through the rules; at least one of them is finite.
int32_t choose_token(std::span<const float> logits, double temperature, Random& random);

// Appends the token to the row and its log probability, from the logits not divided by the
// temperature, to the row's sum; marks the row finished at `eot`, or where `max_length` is passed.
void append_token(Row& row, std::span<const float> logits, int32_t token, int32_t eot,
                  int32_t max_length);

// The sampled tokens up to eot, which is left out.
std::span<const int32_t> text_tokens(const Row& row, int32_t eot);

// Of the rows that listen to one window, the one with the largest sum of log probabilities divided
// by its number of tokens: the first of equals. Its index into `rows`.
size_t best_row(std::span<const Row> rows, int32_t eot);

}  // namespace hark::whisper
