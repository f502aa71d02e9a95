// Raw PCM. The first three bytes choose format, rate and channels, as flags would.
#include "audio/raw.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/target.h"

static std::vector<std::string> raw_seeds() {
    std::vector<std::string> seeds;
    for (char format = 0; format < 6; ++format)
        seeds.push_back(std::string{format, '\x10', '\x02'} + std::string(480, '\x3e'));
    return seeds;
}

static int raw_input(const uint8_t* data, size_t size) {
    if (size < 3) return 0;
    hark::RawFormat format;
    format.format = static_cast<hark::PcmFormat>(data[0] % 6);
    format.rate = data[1] * 1000;
    format.channels = data[2];
    hark::fuzz::decode_bytes(data + 3, size - 3, [&](hark::Input& input) {
        return std::make_unique<hark::RawDecoder>(input, format);
    });
    return 0;
}

// Blocks of each channel have a fixed size.
static const hark::fuzz::Target kRaw{"raw", raw_seeds, raw_input, int64_t{16} << 20};
