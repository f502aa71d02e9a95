// Whisper's decoding rules: pure functions on token ids and logits over a row's fixed state.
// Source: openai/whisper decoding.py, SuppressBlank, SuppressTokens, ApplyTimestampRules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "whisper/transcribe/row.h"

namespace hark::whisper {

// What the rules need to know of a vocabulary and of the options; the same for all rows.
struct Rules {
    int32_t eot = 0;
    int32_t no_timestamps = 0;
    int32_t timestamp_begin = 0;         // <|0.00|>; timestamps run to the vocabulary's end
    bool timestamps = true;              // off with --no-timestamps
    int32_t max_initial_timestamp = 50;  // in steps of 0.02 s; below 0: no limit
    std::vector<int32_t> blank;          // not allowed at the first position: " " and eot
    std::vector<int32_t> suppressed;     // never allowed
    // Not the reference's, and off there; of text tokens alone, timestamps may repeat.
    double repetition_penalty = 1;
    int64_t no_repeat_ngram = 0;
};

// What the next token of a row may not be, by its timestamps so far: the ids of [0, text_end), of
// [timestamp_begin, timestamp_end), and those above timestamp_last.
struct Forbidden {
    int32_t text_end = 0;
    int32_t timestamp_end = 0;
    int32_t timestamp_last = 0;
};

// The timestamp rules that follow from the tokens sampled so far: timestamps come in pairs,
// never go back, no segment has zero length, and the first token is an early timestamp. Nothing
// where the rules have none. (decoding.py, ApplyTimestampRules)
Forbidden forbidden_by_timestamps(const Rules& rules, std::span<const int32_t> sampled,
                                  int32_t n_vocab);

// The text tokens that would end an n-gram which the row's text holds already.
// Source: transformers generation/logits_process.py, NoRepeatNGramLogitsProcessor.
std::vector<int32_t> repeating_tokens(std::span<const int32_t> text, int64_t n);

// Sets to -infinity what the row may not sample next: what would repeat an n-gram, then in the
// reference's order: blank, suppressed, timestamp rules, and last, where the timestamps together
// are likelier than any text token, all text. `logits` (n_vocab) are the row's raw ones.
void apply_rules(const Rules& rules, std::span<const int32_t> sampled, std::span<float> logits);

}  // namespace hark::whisper
