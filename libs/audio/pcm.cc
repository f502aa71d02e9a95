#include "audio/pcm.h"

#include <bit>

#include "core/error.h"

namespace hark {
namespace {

uint64_t little_endian(const unsigned char* bytes, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) value |= uint64_t{bytes[i]} << (8 * i);
    return value;
}

// Signed values stand at the top of 32 bits, so that one scale serves all of them.
float top_of_32(uint64_t bits) {
    return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(bits))) / 2147483648.0f;
}

float sample_of(PcmFormat format, const unsigned char* bytes) {
    switch (format) {
        case PcmFormat::u8:
            return static_cast<float>(bytes[0] - 128) / 128.0f;
        case PcmFormat::s16:
            return top_of_32(little_endian(bytes, 2) << 16);
        case PcmFormat::s24:
            return top_of_32(little_endian(bytes, 3) << 8);
        case PcmFormat::s32:
            return top_of_32(little_endian(bytes, 4));
        case PcmFormat::f32:
            return std::bit_cast<float>(static_cast<uint32_t>(little_endian(bytes, 4)));
        case PcmFormat::f64:
            return static_cast<float>(std::bit_cast<double>(little_endian(bytes, 8)));
    }
    fail("no such sample format");
}

}  // namespace

size_t pcm_bytes(PcmFormat format) {
    static constexpr size_t kBytes[] = {1, 2, 3, 4, 4, 8};
    return kBytes[static_cast<size_t>(format)];
}

void append_pcm(PcmFormat format, const unsigned char* bytes, size_t count,
                std::vector<float>& samples) {
    const size_t step = pcm_bytes(format);
    samples.reserve(samples.size() + count);
    for (size_t i = 0; i < count; ++i) samples.push_back(sample_of(format, bytes + i * step));
}

}  // namespace hark
