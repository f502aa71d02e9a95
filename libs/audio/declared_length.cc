#include "audio/declared_length.h"

#include <cstdint>
#include <string_view>

#include "audio/byte_order.h"
#include "audio/wav.h"

namespace hark {
namespace {

using std::operator""sv;

constexpr uint64_t kMaxHeader = uint64_t{1} << 20;  // bytes that are looked through
constexpr uint64_t kMaxBytes = uint64_t{1} << 48;   // a larger size is a placeholder

struct Mp3Header {
    bool mpeg1 = false, mono = false;
    uint64_t rate = 0;  // Hz, 0 if this is no header of a layer III frame
};

Mp3Header parse_mp3_header(uint64_t word) {
    constexpr uint64_t kRates[] = {44100, 48000, 32000};
    const uint64_t version = word >> 19 & 3, layer = word >> 17 & 3, rate = word >> 10 & 3;
    Mp3Header header;
    if ((word & 0xffe00000) != 0xffe00000 || version == 1 || layer != 1 || rate == 3) return header;
    header.mpeg1 = version == 3;
    header.mono = (word >> 6 & 3) == 3;
    header.rate = kRates[rate] / (version == 3 ? 1 : version == 2 ? 2 : 4);
    return header;
}

// Bytes of the ID3v2 tag that a file begins with.
uint64_t id3_bytes(Input& input) {
    const std::string_view head = input.peek(10);
    if (head.size() < 10 || head.substr(0, 3) != "ID3") return 0;
    uint64_t size = 0;
    for (size_t i = 6; i < 10; ++i) size = size << 7 | (static_cast<unsigned char>(head[i]) & 0x7f);
    return size + 10;
}

double mp3_seconds(Input& input) {
    constexpr size_t kTag = 4 + 32 + 18;  // the header, side information, the tag
    const uint64_t first = id3_bytes(input);
    if (first > kMaxHeader) return 0;
    std::string_view frame = input.peek(first + kTag);
    if (frame.size() < first + kTag) return 0;
    frame = frame.substr(first);
    const Mp3Header header = parse_mp3_header(big_endian(frame, 0, 4));
    if (header.rate == 0) return 0;
    const size_t at = 4 + (header.mpeg1 ? (header.mono ? 17 : 32) : (header.mono ? 9 : 17));
    uint64_t frames = 0;
    const std::string_view tag = frame.substr(at, 4);
    if ((tag == "Xing" || tag == "Info") && (big_endian(frame, at + 4, 4) & 1))
        frames = big_endian(frame, at + 8, 4);
    if (frame.substr(36, 4) == "VBRI") frames = big_endian(frame, 36 + 14, 4);
    if (frames == 0xffffffff) return 0;
    return static_cast<double>(frames) * (header.mpeg1 ? 1152 : 576) /
           static_cast<double>(header.rate);
}

double asf_seconds(Input& input) {
    constexpr size_t kObject = 92;  // bytes of the file properties up to their flags
    constexpr auto kFileProperties =
        "\xa1\xdc\xab\x8c\x47\xa9\xcf\x11\x8e\xe4\x00\xc0\x0c\x20\x53\x65"sv;
    std::string_view head = input.peek(24);
    if (head.size() < 24) return 0;
    const uint64_t size = little_endian(head, 16, 8);
    if (size > kMaxHeader) return 0;
    head = input.peek(size);
    const size_t at = head.find(kFileProperties);
    if (at == std::string_view::npos || head.size() < at + kObject) return 0;
    if (little_endian(head, at + 88, 4) & 1) return 0;  // broadcast: not known while writing
    const double play = static_cast<double>(little_endian(head, at + 64, 8)) / 1e7;
    return play - static_cast<double>(little_endian(head, at + 80, 8)) / 1e3;
}

double w64_seconds(Input& input) {
    uint64_t bytes_per_second = 0;
    for (uint64_t at = 40; at < kMaxHeader;) {
        const std::string_view head = input.peek(at + 24 + 16);
        if (head.size() < at + 24 + 16) return 0;
        const std::string_view id = head.substr(at, 4);
        const uint64_t size = little_endian(head, at + 16, 8);
        if (size < 24 || size > kMaxBytes) return 0;
        const uint64_t tag = little_endian(head, at + 24, 2);
        const bool pcm = tag == 1 || tag == 3 || tag == 0xfffe;
        if (id == "fmt " && pcm) bytes_per_second = little_endian(head, at + 24 + 8, 4);
        if (id == "data")
            return bytes_per_second == 0
                       ? 0
                       : static_cast<double>(size - 24) / static_cast<double>(bytes_per_second);
        at += (size + 7) / 8 * 8;
    }
    return 0;
}

}  // namespace

double declared_seconds(Input& input) {
    const std::string_view head = input.peek(4);
    if (head.size() < 4) return 0;
    if (head == "\x30\x26\xb2\x75"sv) return asf_seconds(input);
    if (head == "RIFF"sv || head == "RF64"sv || head == "BW64"sv) return wav_seconds(input);
    if (head == "riff"sv) return w64_seconds(input);
    if (head.substr(0, 3) == "ID3" || parse_mp3_header(big_endian(head, 0, 4)).rate != 0)
        return mp3_seconds(input);
    return 0;
}

}  // namespace hark
