// What Whisper's encoder computes: for the limits of its time.
#pragma once

#include "whisper/model/config.h"

namespace hark::whisper {

// Floating-point operations for a window, a multiplication and its addition as two.
struct EncoderFlops {
    double products = 0;   // convolutions too
    double attention = 0;  // scores and weighted values
    double total() const { return products + attention; }
};
EncoderFlops encoder_flops(const Config& config);

// Of a window's keys and values for all layers of cross-attention.
double cross_kv_flops(const Config& config);

}  // namespace hark::whisper
