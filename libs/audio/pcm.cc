#include "audio/pcm.h"

#include <bit>

#include "audio/byte_order.h"
#include "core/error.h"

namespace hark {
namespace {

// Signed values are at the top of 32 bits, so that one scale serves all of them.
float top_of_32(uint64_t bits) {
    return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(bits))) / 2147483648.0f;
}

template <PcmFormat kFormat>
float sample_of(const unsigned char* bytes) {
    switch (kFormat) {
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
}

constexpr size_t bytes_of(PcmFormat format) {
    constexpr size_t kBytes[] = {1, 2, 3, 4, 4, 8};
    return kBytes[static_cast<size_t>(format)];
}

// A loop for each format, which the compiler makes vectors of.
template <PcmFormat kFormat>
void convert(const unsigned char* bytes, size_t count, float* samples) {
    for (size_t i = 0; i < count; ++i)
        samples[i] = sample_of<kFormat>(bytes + i * bytes_of(kFormat));
}

}  // namespace

size_t pcm_bytes(PcmFormat format) { return bytes_of(format); }

void append_pcm(PcmFormat format, const unsigned char* bytes, size_t count,
                std::vector<float>& samples) {
    static constexpr decltype(&convert<PcmFormat::u8>) kConvert[] = {
        convert<PcmFormat::u8>,  convert<PcmFormat::s16>, convert<PcmFormat::s24>,
        convert<PcmFormat::s32>, convert<PcmFormat::f32>, convert<PcmFormat::f64>};
    const size_t had = samples.size();
    samples.resize(had + count);
    kConvert[static_cast<size_t>(format)](bytes, count, samples.data() + had);
}

}  // namespace hark
