// Where in a window each token of its text is spoken, by the decoder's cross-attention.
// Source: openai/whisper timing.py, find_alignment.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hark::whisper {

struct TokenAlignment {
    std::vector<double> probability;  // of each token, among the text tokens
    // Steps of 0.02 s from the window's start: token i is spoken in [start[i], start[i + 1]), and
    // one more stands for the end of the text. Empty where there are no tokens.
    std::vector<int32_t> start;
};

// How well rows (tokens) and frames fit: the scores of (heads, rows, frames) as probabilities of
// the frames, normalised over the rows, smoothed over the frames, averaged over the heads. Returns
// (rows, frames); what is in `scores` is used up.
std::vector<float> attention_map(std::span<float> scores, int64_t heads, int64_t rows,
                                 int64_t frames, int threads);

// The first frame of each row on the best way through fit (rows, frames).
std::vector<int32_t> first_frames(std::span<const float> fit, int64_t rows, int64_t frames);

}  // namespace hark::whisper
