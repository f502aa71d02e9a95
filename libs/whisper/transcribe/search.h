// Searches for a window's text: greedily, by sampling, or with beams. Pure functions of rows and of
// constrained logits (logit_constraints.h).
// Source: openai/whisper decoding.py, GreedyDecoder, BeamSearchDecoder, MaximumLikelihoodRanker.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/random.h"
#include "whisper/transcribe/row.h"

namespace hark::whisper {

// The likeliest token at temperature 0, else one drawn from softmax(logits / temperature). `logits`
// (n_vocab) are constrained; at least one is finite.
int32_t choose_token(std::span<const float> logits, double temperature, Random& random);

// Appends the token to the row and adds its log probability, at temperature 1, to the row's sum.
// The row is finished at `eot` or above `max_length` tokens.
void append_token(Row& row, std::span<const float> logits, int32_t token, int32_t eot,
                  int32_t max_length);
// append_token() with a known log probability.
void append_token(Row& row, int32_t token, double logprob, int32_t eot, int32_t max_length);

// A possible next token of a row.
struct Candidate {
    int32_t token = 0;
    float logprob = 0;  // natural logarithm, of the token alone
};

// The n likeliest tokens, likeliest first, equal ones by id; fewer if fewer are allowed.
std::vector<Candidate> best_candidates(std::span<const float> logits, size_t n);

struct BeamOptions {
    size_t size = 1;          // beams
    size_t max_finished = 1;  // sequences that end the search: round(size * patience)
    int32_t eot = 0;
};

// One step of all beams of a window. candidates[i] are the size + 1 best of rows[i]. `rows` become
// the continuations with the highest sums; those among them that end with eot move to `finished`.
// Returns true if the search is over: enough have finished, or no row is left.
bool advance_beams(std::vector<Row>& rows, std::span<const std::vector<Candidate>> candidates,
                   std::vector<Row>& finished, const BeamOptions& options);

// The finished sequences; if they are fewer than the beams, the best unfinished ones too.
std::vector<Row> beam_results(std::span<const Row> rows, std::span<const Row> finished,
                              const BeamOptions& options);

// The sampled tokens before eot.
std::span<const int32_t> text_tokens(const Row& row, int32_t eot);

// The index of a window's row with the highest score, the first of equals. Score: sum of log
// probabilities / number of tokens, or with length penalty alpha / ((5 + tokens) / 6)^alpha (Wu et
// al. 2016, equation 14).
size_t best_row(std::span<const Row> rows, int32_t eot, std::optional<double> length_penalty = {});

}  // namespace hark::whisper
