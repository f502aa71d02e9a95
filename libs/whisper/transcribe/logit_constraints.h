// Whisper's constraints on the next token: pure functions of token ids and logits.
// Source: openai/whisper decoding.py, SuppressBlank, SuppressTokens, ApplyTimestampRules.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "whisper/transcribe/row.h"

namespace hark::whisper {

constexpr float kMasked = -std::numeric_limits<float>::infinity();  // the logit of an id ruled out

// The constraints of a vocabulary and of the options, shared by all rows.
struct LogitConstraints {
    int32_t eot = 0;
    int32_t no_timestamps = 0;
    int32_t timestamp_begin = 0;         // <|0.00|>; this id and all above are timestamps
    bool timestamps = true;              // off with --no-timestamps
    int32_t max_initial_timestamp = 50;  // in steps of 0.02 s; below 0: no limit
    std::vector<int32_t> blank;          // masked for the first token: " " and eot
    std::vector<int32_t> suppressed;     // always masked
    // Not in the reference. For text tokens only: timestamps may repeat.
    double repetition_penalty = 1;
    int64_t no_repeat_ngram = 0;
};

// Ids that the timestamp rules mask: [0, text_end), [timestamp_begin, timestamp_end), and those
// above timestamp_last.
struct TimestampMask {
    int32_t text_end = 0;
    int32_t timestamp_end = 0;
    int32_t timestamp_last = 0;
};

// The mask after these sampled tokens: timestamps come in pairs, never decrease, no segment has
// zero length, the first token is an early timestamp. Masks nothing if constraints.timestamps is
// false. (decoding.py, ApplyTimestampRules)
TimestampMask timestamp_mask(const LogitConstraints& constraints, std::span<const int32_t> sampled,
                             int32_t n_vocab);

// The text tokens that would complete an n-gram which the text already contains.
// Source: transformers generation/logits_process.py, NoRepeatNGramLogitsProcessor.
std::vector<int32_t> repeating_tokens(std::span<const int32_t> text, int64_t n);

// Sets masked logits (n_vocab) to -infinity: repeated n-grams, then in the reference's order blank,
// suppressed, the timestamp mask, and last all text if P(any timestamp) exceeds each text token's
// probability. `logits` are raw on entry.
void apply_constraints(const LogitConstraints& constraints, std::span<const int32_t> sampled,
                       std::span<float> logits);

}  // namespace hark::whisper
