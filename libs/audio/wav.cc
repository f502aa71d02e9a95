#include "audio/wav.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <optional>
#include <string>

#include "audio/byte_order.h"
#include "audio/raw.h"
#include "core/error.h"

namespace hark {
namespace {

constexpr size_t kMaxWavHeader = size_t{1} << 20;  // bytes before the data
// Sizes that mean "unknown": sox and arecord write about 2 GiB to a pipe, ffmpeg about 4.
constexpr bool is_placeholder(uint64_t size) {
    return size == 0 || (size >= 0x7ffff000 && size <= 0x80000000) ||
           (size >= 0xfffff000 && size <= 0xffffffff);
}
constexpr uint64_t kLargestTrusted = uint64_t{1} << 48;

std::optional<PcmFormat> pcm_format(uint64_t tag, size_t bytes) {
    if (tag == 3 && bytes == 4) return PcmFormat::f32;
    if (tag == 3 && bytes == 8) return PcmFormat::f64;
    static constexpr PcmFormat kInteger[] = {PcmFormat::u8, PcmFormat::s16, PcmFormat::s24,
                                             PcmFormat::s32};
    if (tag == 1 && bytes >= 1 && bytes <= 4) return kInteger[bytes - 1];
    return std::nullopt;
}

// The chunks before the samples.
struct WavHeader {
    std::string format;      // the `fmt ` chunk
    uint64_t bytes = 0;      // of the samples; 0 if unknown
    uint64_t fact = 0;       // samples per channel, 0 if unknown
    size_t data_offset = 0;  // bytes
};

// Returns nothing, and takes nothing from the input, if this is no RIFF, RF64 or BW64 with samples.
std::optional<WavHeader> read_header(Input& input) {
    std::string_view head = input.peek(12);
    if (head.size() < 12 || head.substr(8, 4) != "WAVE") return std::nullopt;
    const std::string_view form = head.substr(0, 4);
    if (form != "RIFF" && form != "RF64" && form != "BW64") return std::nullopt;
    WavHeader header;
    uint64_t long_size = 0;  // of the samples, from RF64's ds64 chunk
    for (size_t at = 12; at < kMaxWavHeader;) {
        head = input.peek(at + 8);
        if (head.size() < at + 8) return std::nullopt;
        const std::string id(head.substr(at, 4));
        uint64_t size = little_endian(head, at + 4, 4);
        at += 8;
        if (id == "data") {
            const int64_t end = static_cast<int64_t>(at + size);
            if (size == 0xffffffff && long_size != 0) {
                size = long_size;
            } else if (is_placeholder(size) && !(input.seekable() && end <= input.size())) {
                size = 0;
            }
            header.bytes = size < kLargestTrusted ? size : 0;
            header.data_offset = at;
            return header;
        }
        if (at > kMaxWavHeader || size > kMaxWavHeader - at) return std::nullopt;
        if (id == "fmt " || id == "ds64" || id == "fact") {
            head = input.peek(at + size);
            if (head.size() < at + size) return std::nullopt;
            if (id == "fmt ") header.format = head.substr(at, size);
            if (id == "ds64" && size >= 16) long_size = little_endian(head, at + 8, 8);
            if (id == "fact" && size >= 4) header.fact = little_endian(head, at, 4);
        }
        at += size + size % 2;
    }
    return std::nullopt;
}

// Reads a `fmt ` chunk; returns nothing if it is not PCM or contradicts itself.
std::optional<RawFormat> parse_format(std::string_view chunk) {
    if (chunk.size() < 16) return std::nullopt;
    uint64_t tag = little_endian(chunk, 0, 2);
    const uint64_t channels = little_endian(chunk, 2, 2), rate = little_endian(chunk, 4, 4);
    const uint64_t align = little_endian(chunk, 12, 2), bits = little_endian(chunk, 14, 2);
    RawFormat format;
    if (tag == 0xfffe && chunk.size() >= 40) {  // WAVE_FORMAT_EXTENSIBLE
        format.layout = little_endian(chunk, 20, 4);
        tag = little_endian(chunk, 24, 2);
    }
    if (channels == 0 || align % channels != 0 || bits == 0 || bits > align / channels * 8)
        return std::nullopt;
    const std::optional<PcmFormat> pcm = pcm_format(tag, align / channels);
    if (!pcm || rate > static_cast<uint64_t>(kMaxRate)) return std::nullopt;
    format.format = *pcm;
    format.rate = static_cast<int>(rate);
    format.channels = static_cast<int>(channels);
    if (std::popcount(format.layout) != format.channels) format.layout = 0;
    return format;
}

bool is_pcm_wav_file(const std::string& path) {
    std::error_code unknown;
    if (path != "-" && !std::filesystem::is_regular_file(path, unknown)) return false;
    try {
        Input input(path);
        if (!input.seekable()) return false;  // a pipe cannot be read twice
        const bool is_pcm = is_pcm_wav(input);
        input.seek(0);  // standard input is read again
        return is_pcm;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

bool is_pcm_wav(Input& input) {
    const std::optional<WavHeader> header = read_header(input);
    return header && parse_format(header->format);
}

bool are_pcm_wav_files(std::span<const std::string> paths) {
    constexpr size_t kMost = 64;
    return paths.size() <= kMost && std::ranges::all_of(paths, is_pcm_wav_file);
}

std::unique_ptr<Decoder> open_wav(Input& input) {
    const std::optional<WavHeader> header = read_header(input);
    const std::optional<RawFormat> format = header ? parse_format(header->format) : std::nullopt;
    if (!format) return nullptr;
    std::string skipped(header->data_offset, '\0');
    input.read(skipped.data(), skipped.size());
    return std::make_unique<RawDecoder>(
        input, *format, header->bytes != 0 ? static_cast<int64_t>(header->bytes) : -1);
}

double wav_seconds(Input& input) {
    const std::optional<WavHeader> header = read_header(input);
    if (!header || header->format.size() < 16) return 0;
    const std::string& format = header->format;
    const uint64_t tag = little_endian(format, 0, 2), rate = little_endian(format, 4, 4);
    const uint64_t align = little_endian(format, 12, 2);
    if (rate == 0 || align == 0) return 0;
    double samples = 0;
    if (tag == 6 || tag == 7)  // A-law, mu-law
        samples = static_cast<double>(header->bytes / align);
    else if ((tag == 2 || tag == 0x11) && format.size() >= 20)  // ADPCM: whole blocks
        samples = static_cast<double>(header->bytes / align * little_endian(format, 18, 2));
    else if (header->bytes != 0 && header->fact != 0xffffffff)
        samples = static_cast<double>(header->fact);
    return samples / static_cast<double>(rate);
}

}  // namespace hark
