// What Whisper's parts read and compute, for the limits of their times; and the measurement on a
// GPU.
#pragma once

#include <string>
#include <vector>

#include "whisper/model/model.h"

namespace hark::bench {

// Bytes that one token reads: the decoder's weights and `windows` windows' cross-attention keys and
// values, or with CrossKvMode::recompute the encoder's output once per layer.
double token_bytes(const whisper::Model& model, double windows, whisper::CrossKvMode mode,
                   Device device);

// Prints the rows of `bench whisper --device cuda`: for each number of windows side by side the
// encoder with the cross-attention cache, a step of decoding, and windows with 100 tokens each.
void whisper_on_gpu(const std::string& size, const std::string& dtype,
                    const std::vector<int64_t>& batches);

}  // namespace hark::bench
