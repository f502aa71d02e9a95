// How a window's text is searched for: greedily, by sampling, or with beams. Pure functions on
// logits that have been through the rules, and on rows.
// Source: openai/whisper decoding.py, GreedyDecoder, BeamSearchDecoder, MaximumLikelihoodRanker.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/random.h"
#include "whisper/transcribe/row.h"

namespace hark::whisper {

// The likeliest token where temperature is 0, else one drawn from softmax(logits / temperature).
// `logits` (n_vocab) have been through the rules; at least one of them is finite.
int32_t choose_token(std::span<const float> logits, double temperature, Random& random);

// Appends the token to the row and its log probability, from the logits not divided by the
// temperature, to the row's sum; marks the row finished at `eot`, or where `max_length` is passed.
void append_token(Row& row, std::span<const float> logits, int32_t token, int32_t eot,
                  int32_t max_length);
// The same where the token's log probability is known.
void append_token(Row& row, int32_t token, double logprob, int32_t eot, int32_t max_length);

// A way for a row to go on.
struct Candidate {
    int32_t token = 0;
    float logprob = 0;  // natural, of the token alone
};

// The n likeliest tokens, likeliest first, the lowest id of equal ones; fewer where the rules leave
// fewer.
std::vector<Candidate> best_candidates(std::span<const float> logits, size_t n);

struct BeamOptions {
    size_t size = 1;          // rows kept
    size_t max_finished = 1;  // sequences that end the search: round(size * patience)
    int32_t eot = 0;
};

// One step of all beams of a window. candidates[i] are those of rows[i], its size + 1 best ones.
// `rows` become the best continuations by their sum of log probabilities, `parent` naming the row
// that each goes on from; sequences that end with eot and rank among them join `finished`. Returns
// whether the search is over: enough have finished, or no row can go on.
bool advance_beams(std::vector<Row>& rows, std::span<const std::vector<Candidate>> candidates,
                   std::vector<Row>& finished, const BeamOptions& options);

// What the beams have found: those finished, and where they are fewer than the beams, the best
// unfinished ones.
std::vector<Row> beam_results(std::span<const Row> rows, std::span<const Row> finished,
                              const BeamOptions& options);

// The sampled tokens up to eot, which is left out.
std::span<const int32_t> text_tokens(const Row& row, int32_t eot);

// Of the rows that listen to one window, the one with the largest sum of log probabilities divided
// by its number of tokens, or with a length penalty alpha (Wu et al. 2016, equation 14) by
// ((5 + tokens) / 6)^alpha: the first of equals. Its index into `rows`.
size_t best_row(std::span<const Row> rows, int32_t eot, std::optional<double> length_penalty = {});

}  // namespace hark::whisper
