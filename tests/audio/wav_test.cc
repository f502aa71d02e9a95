#include "audio/wav.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <functional>

#include "audio/raw.h"
#include "core/error.h"
#include "support/audio.h"
#include "support/process.h"

namespace hark {
namespace {

using test::little_endian;
using test::riff_chunk;
using test::wav_file;

struct Decoded {
    bool opened = false;
    AudioBlock format;  // the last block's
    std::vector<float> samples;
    std::string error;
};

Decoded decode(Input& input, const std::function<std::unique_ptr<Decoder>(Input&)>& open) {
    Decoded result;
    try {
        const std::unique_ptr<Decoder> decoder = open(input);
        result.opened = decoder != nullptr;
        AudioBlock block;
        while (decoder && decoder->next(block)) {
            result.samples.insert(result.samples.end(), block.samples.begin(), block.samples.end());
            result.format = block;
        }
        if (decoder) result.error = decoder->loss().text;
    } catch (const Error& failure) {
        result.error = failure.what();
    }
    return result;
}

Decoded decode_wav(const std::string& bytes) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "a.wav";
    test::write_text(path, bytes);
    Input input(path);
    return decode(input, open_wav);
}

std::string s16(std::vector<int> values) {
    std::string data;
    for (int value : values) data += little_endian(static_cast<uint64_t>(value), 2);
    return data;
}

TEST(Wav, ReadsEverySampleFormatAtFullScaleOne) {
    struct Case {
        int tag, bytes;
        std::string data;
        std::vector<float> expected;
    };
    const std::vector<Case> cases = {
        {1, 1, std::string("\x00\x80\xff", 3), {-1.0f, 0.0f, 127 / 128.0f}},
        {1, 2, s16({-32768, 1, 32767}), {-1.0f, 1 / 32768.0f, 32767 / 32768.0f}},
        {1, 3, std::string("\x00\x00\x80\x01\x00\x00", 6), {-1.0f, 1 / 8388608.0f}},
        {1, 4, std::string("\x00\x00\x00\x80\x00\x00\x00\x40", 8), {-1.0f, 0.5f}},
        {3, 4, little_endian(std::bit_cast<uint32_t>(-0.25f), 4), {-0.25f}},
        {3, 8, little_endian(std::bit_cast<uint64_t>(0.375), 8), {0.375f}},
    };
    for (const Case& c : cases) {
        const Decoded got = decode_wav(wav_file(c.tag, c.bytes, 22050, 1, c.data));
        EXPECT_EQ(got.samples, c.expected) << c.tag << " " << c.bytes << " " << got.error;
        EXPECT_EQ(got.format.rate, 22050);
        EXPECT_EQ(got.format.channels, 1);
    }
}

TEST(Wav, ReadsExtensibleWithItsLoudspeakers) {
    const auto format = [](uint64_t mask) {
        return riff_chunk("fmt ", little_endian(0xfffe, 2) + little_endian(2, 2) +
                                      little_endian(48000, 4) + little_endian(192000, 4) +
                                      little_endian(4, 2) + little_endian(16, 2) +
                                      little_endian(22, 2) + little_endian(16, 2) +
                                      little_endian(mask, 4) + little_endian(1, 2) +
                                      std::string("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14));
    };
    const std::string data = riff_chunk("data", s16({100, 200, 300, 400}));
    const Decoded got = decode_wav(riff_chunk("RIFF", "WAVE" + format(0x600) + data));
    EXPECT_EQ(got.samples.size(), 4u) << got.error;
    EXPECT_EQ(got.format.layout, 0x600u);
    // A mask with another number of loudspeakers than channels says nothing.
    EXPECT_EQ(decode_wav(riff_chunk("RIFF", "WAVE" + format(7) + data)).format.layout, 0u);
}

TEST(Wav, SkipsChunksBeforeAndBehindTheData) {
    const std::string plain = wav_file(1, 2, 16000, 1, s16({1, 2, 3}));
    const std::string odd = riff_chunk("LIST", "odd");
    const std::string bytes = plain.substr(0, 36) + odd + plain.substr(36) + odd;
    EXPECT_EQ(decode_wav(bytes).samples, decode_wav(plain).samples);
    EXPECT_EQ(decode_wav(plain).samples.size(), 3u);
}

TEST(Wav, ReadsToTheEndWhereTheSizeIsUnknown) {
    for (uint64_t size : {0x0ull, 0x7ffff000ull, 0x7fffffffull, 0x80000000ull, 0xffffffffull}) {
        const Decoded got =
            decode_wav(wav_file(1, 2, 16000, 1, s16({5, 6, 7}), static_cast<int64_t>(size)));
        EXPECT_EQ(got.samples.size(), 3u) << size;
        EXPECT_EQ(got.error, "");
    }
}

TEST(Wav, ReadsTheLongSizeOfRf64) {
    const std::string plain = wav_file(1, 2, 16000, 1, s16({1, 2, 3, 4}), 0xffffffff);
    const auto with_size = [&](uint64_t size) {
        const std::string long_sizes =
            riff_chunk("ds64", little_endian(0, 8) + little_endian(size, 8) + little_endian(0, 12));
        return "RF64" + plain.substr(4, 8) + long_sizes + plain.substr(12);
    };
    EXPECT_EQ(decode_wav(with_size(4)).samples.size(), 2u);
    EXPECT_EQ(decode_wav(with_size(0)).samples.size(), 4u);
}

TEST(Wav, SaysWhereTheInputWasCut) {
    const std::string whole = wav_file(1, 2, 16000, 2, s16({1, 2, 3, 4, 5, 6}));
    Decoded got = decode_wav(whole.substr(0, whole.size() - 4));
    EXPECT_EQ(got.samples.size(), 4u);
    EXPECT_NE(got.error.find("ends at 0.0001 of 0.0002 s"), std::string::npos) << got.error;
    // A length between 2 and 4 GiB is no placeholder.
    got = decode_wav(wav_file(1, 2, 16000, 1, s16({1, 2, 3}), 3'200'000'000));
    EXPECT_EQ(got.samples.size(), 3u);
    EXPECT_EQ(got.error, "ends at 0.0 of 100000.0 s");
    got = decode_wav(wav_file(1, 2, 16000, 2, s16({1, 2, 3}), 0xffffffff));
    EXPECT_NE(got.error.find("inside a sample"), std::string::npos) << got.error;
}

TEST(Wav, TakesNothingFromWhatItDoesNotRead) {
    const std::string adpcm = wav_file(2, 2, 16000, 1, s16({1, 2}));
    const std::string no_format = riff_chunk("RIFF", "WAVE" + riff_chunk("data", "abcd"));
    const std::string huge_chunk =
        riff_chunk("RIFF", "WAVE" + riff_chunk("LIST", "", 0xfffffff0) + "data");
    for (const std::string& bytes : {std::string(), std::string("RIFF"), adpcm, no_format,
                                     huge_chunk, std::string(100, 'x')}) {
        const test::TemporaryDirectory directory;
        const std::string path = directory.path() / "a.wav";
        test::write_text(path, bytes);
        Input input(path);
        EXPECT_EQ(open_wav(input), nullptr);
        EXPECT_EQ(input.position(), 0);
        EXPECT_EQ(input.peek(bytes.size()), bytes);
    }
}

// Another file as standard input, for a while.
class StandardInput {
  public:
    explicit StandardInput(int file) : before_(::dup(STDIN_FILENO)) {
        ::dup2(file, STDIN_FILENO);
        ::close(file);
    }
    ~StandardInput() {
        ::dup2(before_, STDIN_FILENO);
        ::close(before_);
    }
    StandardInput(const StandardInput&) = delete;

  private:
    int before_;
};

TEST(Wav, AFileAsStandardInputIsLookedAtFromItsPosition) {
    const std::vector<std::string> names = {"-"};
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "a";
    const std::string wav = wav_file(1, 2, 16000, 1, s16({1, 2, 3}));
    test::write_text(path, "before" + wav);
    for (const off_t at : {off_t{6}, off_t{0}}) {
        const StandardInput given(::open(path.c_str(), O_RDONLY));
        ::lseek(STDIN_FILENO, at, SEEK_SET);
        EXPECT_EQ(are_pcm_wav_files(names), at == 6);
        EXPECT_EQ(::lseek(STDIN_FILENO, 0, SEEK_CUR), at);
    }
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], wav.data(), wav.size()), static_cast<ssize_t>(wav.size()));
    ::close(ends[1]);
    const StandardInput given(ends[0]);
    EXPECT_FALSE(are_pcm_wav_files(names));
    Input input("-");
    EXPECT_EQ(decode(input, open_wav).samples.size(), 3u);
}

TEST(Wav, RefusesRatesAndChannelsBeyondBelief) {
    const std::string data(256, '\0');
    EXPECT_NE(decode_wav(wav_file(1, 2, 1, 1, data)).error.find("got 1 Hz"), std::string::npos);
    EXPECT_NE(decode_wav(wav_file(1, 1, 16000, 65, data)).error.find("got 65"), std::string::npos);
}

TEST(Raw, KeepsBytesOfAFrameUntilItIsWhole) {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "a.raw";
    std::string data;
    for (int i = 0; i < 100000; ++i) data += little_endian(static_cast<uint64_t>(i % 1000), 3);
    test::write_text(path, data);
    Input input(path);
    const Decoded got = decode(input, [](Input& in) {
        return std::make_unique<RawDecoder>(in, RawFormat{PcmFormat::s24, 16000, 5, 0});
    });
    ASSERT_EQ(got.samples.size(), 100000u) << got.error;
    for (size_t i = 0; i < got.samples.size(); ++i)
        ASSERT_EQ(got.samples[i], static_cast<float>(i % 1000) / 8388608.0f);
}

}  // namespace
}  // namespace hark
