// When each token of a window's text is spoken, from the decoder's cross-attention.
// Source: openai/whisper timing.py, find_alignment.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hark::whisper {

constexpr int64_t kFramesPerStep = 2;  // of the spectrogram, per step of 0.02 s

struct TokenAlignment {
    std::vector<double> probability;  // of each token, among the text tokens
    // Steps of 0.02 s from the window's start: token i is spoken in [start[i], start[i + 1]). One
    // value more than tokens, for the text's end; empty without tokens.
    std::vector<int32_t> start;
};

// How well rows (tokens) and frames fit (rows, frames): softmax of the scores (heads, rows, frames)
// over the frames, normalised over the rows, median-filtered over the frames, averaged over the
// heads. Overwrites `scores`.
std::vector<float> attention_map(std::span<float> scores, int64_t heads, int64_t rows,
                                 int64_t frames, int threads);

// The first frame of each row on the best path (dtw.h) through fit (rows, frames).
std::vector<int32_t> first_frames(std::span<const float> fit, int64_t rows, int64_t frames);

}  // namespace hark::whisper
