// The WAV reader, and the conversion of whatever rates and channels a header claims.
#include "audio/wav.h"
#include "core/error.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"

namespace {

std::string little_endian(uint64_t value, size_t bytes) {
    std::string text;
    for (size_t i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value);
    return text;
}

std::string chunk(const std::string& id, const std::string& data, int64_t size = -1) {
    return id + little_endian(size < 0 ? data.size() : static_cast<uint64_t>(size), 4) + data;
}

std::string format(int tag, int channels, int rate, int bytes, const std::string& more = "") {
    return chunk("fmt ", little_endian(tag, 2) + little_endian(channels, 2) +
                             little_endian(rate, 4) + little_endian(rate * channels * bytes, 4) +
                             little_endian(channels * bytes, 2) + little_endian(bytes * 8, 2) +
                             more);
}

}  // namespace

static std::vector<std::string> wav_seeds() {
    const std::string samples(240, '\x11');
    const std::string extensible = little_endian(22, 2) + little_endian(16, 2) +
                                   little_endian(3, 4) + little_endian(1, 2) +
                                   std::string("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
    const auto riff = [](const std::string& body) { return chunk("RIFF", "WAVE" + body); };
    return {
        riff(format(1, 1, 16000, 2) + chunk("data", samples)),
        riff(format(1, 2, 44100, 3) + chunk("LIST", "INFOISFT") + chunk("data", samples)),
        riff(format(3, 1, 8000, 4) + chunk("data", samples)),
        riff(format(3, 2, 48000, 8) + chunk("data", samples, 0xffffffff)),
        riff(format(1, 1, 22050, 1) + chunk("data", samples, 0)),
        riff(format(0xfffe, 2, 32000, 2, extensible) + chunk("data", samples)),
        riff(format(0x11, 1, 8000, 1, little_endian(2, 2) + little_endian(505, 2)) +
             chunk("data", samples)),
        riff(format(6, 1, 8000, 1) + chunk("fact", little_endian(240, 4)) + chunk("data", samples)),
        riff(format(0x55, 1, 8000, 1) + chunk("fact", little_endian(240, 4)) +
             chunk("data", samples)),
        "RF64" + little_endian(0xffffffff, 4) + "WAVE" +
            chunk("ds64", little_endian(0, 8) + little_endian(240, 8) + little_endian(0, 12)) +
            format(1, 6, 48000, 4) + chunk("data", samples, 0xffffffff),
    };
}

static int wav_input(const uint8_t* data, size_t size) {
    hark::fuzz::decode_bytes(data, size, [](hark::Input& input) {
        std::unique_ptr<hark::Decoder> decoder = hark::open_wav(input);
        hark::require(decoder != nullptr, "not a WAV file with PCM");
        return decoder;
    });
    const hark::fuzz::MemoryFile file(data, size);
    try {
        hark::Input input(file.fd(), "input");
        hark::wav_seconds(input);
    } catch (const hark::Error&) {
    }
    return 0;
}

// Blocks of each channel have a fixed size.
static const hark::fuzz::Target kWav{"wav", wav_seeds, wav_input, int64_t{16} << 20};
