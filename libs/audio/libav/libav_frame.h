// The samples of libav's frames.
#pragma once

#include <vector>

struct AVFrame;

namespace hark {

// Appends a frame's samples, interleaved, full scale at 1. Throws Error for an unknown format.
void append_frame(const AVFrame& frame, std::vector<float>& out);

}  // namespace hark
