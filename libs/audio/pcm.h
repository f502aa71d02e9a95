// Samples as bytes, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hark {

enum class PcmFormat { u8, s16, s24, s32, f32, f64 };

size_t pcm_bytes(PcmFormat format);  // of one sample

// Appends `count` samples at `bytes` to `samples`, full scale at 1.
void append_pcm(PcmFormat format, const unsigned char* bytes, size_t count,
                std::vector<float>& samples);

}  // namespace hark
