#include "audio/resampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "formats/recordings.h"
#include "support/audio.h"
#include "support/process.h"
#include "support/recordings.h"

namespace hark {
namespace {

// Smooth noise of some channels: what a codec or a microphone gives, at most half of full scale.
std::string pcm_noise(int channels, int frames) {
    test::SplitMix64 generator(static_cast<uint64_t>(channels));
    std::vector<int> state(static_cast<size_t>(channels), 0);
    std::string data;
    for (int i = 0; i < frames; ++i) {
        for (int& value : state) {
            value += (static_cast<int>(generator.draw() >> 49) - 16384 - value) / 4;
            data += test::little_endian(static_cast<uint64_t>(value), 2);
        }
    }
    return data;
}

AudioBlock tone(int rate, int channels, int frames) {
    AudioBlock block{rate, channels, 0, {}};
    for (int i = 0; i < frames; ++i)
        for (int c = 0; c < channels; ++c)
            block.samples.push_back(
                0.5f * static_cast<float>(std::sin(2 * M_PI * 440 * (c + 1) * i / rate)));
    return block;
}

// The mono samples that the tool gives, against what the ffmpeg command gives in 16 bits.
void expect_level_of_ffmpeg(const std::string& file) {
    const test::ProcessResult ffmpeg =
        test::run_shell("ffmpeg -nostdin -v error -i '" + file + "' -ac 1 -ar 16000 -f s16le -");
    ASSERT_EQ(ffmpeg.exit_code, 0) << ffmpeg.err;
    const test::ProcessResult tool = test::run_tool("audio-decode", {"--chunk", "0", file});
    ASSERT_EQ(tool.exit_code, 0) << tool.err;
    const std::vector<float> samples = test::join(test::read_chunks(tool.out, "audio"))["1"].values;
    ASSERT_EQ(samples.size(), ffmpeg.out.size() / 2) << file;
    double worst = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
        const int expected =
            static_cast<int16_t>(static_cast<unsigned char>(ffmpeg.out[2 * i]) |
                                 static_cast<unsigned char>(ffmpeg.out[2 * i + 1]) << 8);
        worst = std::max(worst, std::abs(samples[i] * 32768.0 - expected));
    }
    EXPECT_LE(worst, 2.5) << file;  // steps of 16 bits; ffmpeg also rounds before
}

TEST(Resampler, MixesAtTheLevelOfFfmpegs16BitPath) {
    if (test::run_shell("command -v ffmpeg").exit_code != 0) GTEST_SKIP() << "no ffmpeg here";
    const test::TemporaryDirectory directory;
    for (const auto& [channels, rate] : {std::pair{1, 8000},
                                         {1, 16000},
                                         {2, 16000},
                                         {2, 44100},
                                         {3, 22050},
                                         {6, 48000},
                                         {8, 16000}}) {
        const std::string path =
            directory.path() / (std::to_string(channels) + "_" + std::to_string(rate) + ".wav");
        test::write_text(path, test::wav_file(1, 2, rate, channels, pcm_noise(channels, rate)));
        expect_level_of_ffmpeg(path);
    }
    for (const char* sample : {"two_speakers.flac", "news.mp4", "story.mp3", "telephone.wav"})
        expect_level_of_ffmpeg(test::samples_dir() / sample);
}

TEST(Resampler, KeepsLengthAndToneAtEveryRate) {
    for (int rate : {1000, 8000, 11025, 16000, 22050, 44100, 48000, 96000, 192000}) {
        Resampler resampler(tone(rate, 1, 0), false);
        Channels out;
        resampler.push(tone(rate, 1, rate), out);
        resampler.finish(out);
        ASSERT_EQ(out.size(), 1u);
        EXPECT_NEAR(static_cast<double>(out[0].size()), 16000, 2) << rate;
        double difference = 0;
        for (size_t i = 1600; i < 14400; ++i)
            difference = std::max(
                difference, std::abs(out[0][i] - 0.5 * std::sin(2 * M_PI * 440 * i / 16000.0)));
        // 440 Hz is near the edge of what a rate of 1000 Hz can carry.
        EXPECT_LT(difference, rate == 1000 ? 0.05 : 2e-3) << rate;
    }
}

TEST(Resampler, DoesNotDependOnTheCuts) {
    const AudioBlock whole = tone(44100, 2, 44100);
    Channels once, pieces;
    Resampler first(whole, false), second(whole, false);
    first.push(whole, once);
    first.finish(once);
    for (size_t at = 0; at < whole.samples.size(); at += 2 * 1001) {
        AudioBlock piece = whole;
        const size_t end = std::min(at + 2 * 1001, whole.samples.size());
        piece.samples.assign(whole.samples.begin() + static_cast<ptrdiff_t>(at),
                             whole.samples.begin() + static_cast<ptrdiff_t>(end));
        second.push(piece, pieces);
    }
    second.finish(pieces);
    EXPECT_EQ(once, pieces);
}

TEST(Resampler, SplitsChannels) {
    const AudioBlock block = tone(16000, 3, 1000);
    Resampler resampler(block, true);
    Channels out;
    resampler.push(block, out);
    resampler.finish(out);
    ASSERT_EQ(out.size(), 3u);
    for (size_t c = 0; c < 3; ++c) {
        ASSERT_EQ(out[c].size(), 1000u);
        for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(out[c][i], block.samples[3 * i + c]);
    }
}

// Thirteen channels without names, and two whose names nobody mixes: left, and right of centre.
TEST(Resampler, MixesUnknownLoudspeakersByTheirMean) {
    AudioBlock odd = tone(16000, 2, 100);
    odd.layout = 0x81;
    Resampler two(odd, false);
    Channels mixed;
    two.push(odd, mixed);
    two.finish(mixed);
    for (size_t i = 0; i < 100; ++i)
        ASSERT_NEAR(mixed[0][i], (odd.samples[2 * i] + odd.samples[2 * i + 1]) / 2, 1e-6);
    const AudioBlock block = tone(16000, 13, 1000);
    Resampler resampler(block, false);
    Channels out;
    resampler.push(block, out);
    resampler.finish(out);
    ASSERT_EQ(out[0].size(), 1000u);
    for (size_t i = 0; i < 1000; ++i) {
        double mean = 0;
        for (size_t c = 0; c < 13; ++c) mean += block.samples[13 * i + c] / 13.0;
        ASSERT_NEAR(out[0][i], mean, 1e-6);
    }
}

TEST(Resampler, RefusesWhatIsNotFiniteAndKeepsWhatCameBefore) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        for (const bool split : {false, true}) {
            AudioBlock block = tone(16000, 2, 4000);
            block.samples[2 * 2000 + 1] = bad;
            Resampler resampler(block, split);
            Channels out;
            EXPECT_THROW(resampler.push(block, out), Error);
            ASSERT_EQ(out.size(), split ? 2u : 1u);
            for (const std::vector<float>& channel : out) {
                ASSERT_EQ(channel.size(), 2000u);
                for (float x : channel) ASSERT_TRUE(std::isfinite(x));
            }
        }
    }
}

// As ffmpeg's 16-bit path, through which openai-whisper reads: after mixing and resampling.
TEST(Resampler, ClipsToFullScale) {
    AudioBlock loud = tone(16000, 1, 4000);
    for (float& x : loud.samples) x *= 6;
    Resampler mono(loud, false);
    Channels out;
    mono.push(loud, out);
    for (size_t i = 0; i < 4000; ++i)
        ASSERT_EQ(out[0][i], std::clamp(loud.samples[i], -1.0f, 32767.0f / 32768.0f));
    AudioBlock opposite{16000, 2, 0, {}};  // 1.5 and -1 mix to 0.25: no clipping before
    for (int i = 0; i < 100; ++i) opposite.samples.insert(opposite.samples.end(), {1.5f, -1.0f});
    Resampler stereo(opposite, false);
    Channels mixed;
    stereo.push(opposite, mixed);
    for (float x : mixed[0]) ASSERT_NEAR(x, 0.25f, 1e-6);
}

TEST(Resampler, ClipsWhereFfmpegDoes) {
    if (test::run_shell("command -v ffmpeg").exit_code != 0) GTEST_SKIP() << "no ffmpeg here";
    const test::TemporaryDirectory directory;
    for (const int rate : {16000, 44100}) {
        std::string data;
        for (float x : tone(rate, 1, rate).samples)
            data += test::little_endian(std::bit_cast<uint32_t>(3 * x), 4);
        const std::string path = directory.path() / "loud.wav";
        test::write_text(path, test::wav_file(3, 4, rate, 1, data));
        expect_level_of_ffmpeg(path);
    }
}

}  // namespace
}  // namespace hark
