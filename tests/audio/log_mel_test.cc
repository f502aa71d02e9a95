#include "audio/log_mel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/json/json.h"
#include "support/process.h"
#include "support/recordings.h"

namespace hark {
namespace {

using nlohmann::json;

// The signal of tests/golden/log_mel.py.
std::vector<float> golden_signal(int64_t n) {
    test::SplitMix64 noise(static_cast<uint64_t>(n));
    std::vector<float> samples;
    for (int64_t i = 0; i < n; ++i) {
        const int triangle = std::abs(static_cast<int>(i % 100) - 50) * 400 - 10000;
        const int sample = static_cast<int>(noise.draw() >> 52) - 2048 + triangle;
        samples.push_back(static_cast<float>(sample) / 32768.0f);
    }
    return samples;
}

// The whole recording's frames, given in pieces of `step` samples.
std::vector<float> mel_frames_of(const std::vector<float>& samples, int n_mels, size_t step) {
    LogMel log_mel(n_mels);
    std::vector<float> frames;
    for (size_t at = 0; at < samples.size(); at += step)
        log_mel.push({samples.data() + at, std::min(step, samples.size() - at)}, frames);
    log_mel.finish(frames);
    return frames;
}

TEST(LogMel, IsWithin1e4OfOpenaiWhisperForEveryFrame) {
    const json cases =
        json::parse(test::read_text(test::source_dir() / "tests/golden/log_mel.json"));
    ASSERT_GE(cases.size(), 20u);
    double worst = 0;
    for (const json& golden : cases) {
        const int64_t n = golden["samples"];
        const int n_mels = golden["n_mels"];
        SCOPED_TRACE(testing::Message() << n << " samples, " << n_mels << " mels");
        std::vector<float> frames = mel_frames_of(golden_signal(n), n_mels, 12345);
        ASSERT_EQ(static_cast<int64_t>(frames.size()), log_mel_frames(n) * n_mels);
        // No frame that openai-whisper can tell from silence is missing.
        EXPECT_LE(golden["frames"].get<int64_t>(), log_mel_frames(n));
        frames.resize(frames.size() + static_cast<size_t>(n_mels), -10.0f);  // one of the zeros
        normalize_log_mel(frames);
        for (const auto& [frame, values] : golden["spots"].items()) {
            const size_t at = std::stoul(frame) * static_cast<size_t>(n_mels);
            for (size_t m = 0; m < values.size(); ++m) {
                const double difference = std::abs(frames[at + m] - values[m].get<double>());
                worst = std::max(worst, difference);
                ASSERT_LE(difference, 1e-4) << "frame " << frame << ", mel " << m;
            }
        }
        const json means = golden.value("means", json::array());
        for (size_t t = 0; t < means.size(); ++t) {
            double sum = 0;
            for (int m = 0; m < n_mels; ++m)
                sum += frames[t * static_cast<size_t>(n_mels) + static_cast<size_t>(m)];
            ASSERT_NEAR(sum / n_mels, means[t].get<double>(), 2e-5) << "frame " << t;
        }
    }
    RecordProperty("worst", std::to_string(worst));
}

TEST(LogMel, DoesNotDependOnTheCutsToTheLastBit) {
    for (int64_t n : {0, 1, 150, 201, 399, 5000, 48161}) {
        const std::vector<float> samples = golden_signal(n);
        const std::vector<float> whole = mel_frames_of(samples, 80, 1 << 20);
        for (size_t step : {1, 7, 160, 161, 400, 4799}) {
            const std::vector<float> cut = mel_frames_of(samples, 80, step);
            ASSERT_EQ(cut.size(), whole.size());
            EXPECT_EQ(std::memcmp(cut.data(), whole.data(), whole.size() * sizeof(float)), 0)
                << n << " samples in pieces of " << step;
        }
    }
}

TEST(LogMel, DoesNotDependOnTheThreadsToTheLastBit) {
    const std::vector<float> samples = golden_signal(400000);
    const std::vector<float> expected = mel_frames_of(samples, 128, samples.size());
    for (const int threads : {2, 3, 16}) {
        Context ctx(threads);
        LogMel log_mel(std::make_shared<const MelFrames>(128, &ctx));
        std::vector<float> frames;
        log_mel.push(samples, frames);
        log_mel.finish(frames);
        EXPECT_TRUE(frames == expected) << threads << " threads";
    }
}

TEST(LogMel, CountsTheFramesThatHearTheRecording) {
    EXPECT_EQ(content_frames(0), 0);
    EXPECT_EQ(content_frames(159), 0);
    EXPECT_EQ(content_frames(160), 1);
    EXPECT_EQ(content_frames(480000), 3000);
    EXPECT_EQ(log_mel_frames(0), 2);
    EXPECT_EQ(log_mel_frames(121), 2);
    EXPECT_EQ(log_mel_frames(122), 3);
    EXPECT_EQ(log_mel_frames(160), 3);
    EXPECT_EQ(log_mel_frames(480000), 3002);
    // A recording whose last sample alone is loud: the third frame past the content overlaps it.
    std::vector<float> samples(8 * 160 + 159, 0.0f);
    samples.back() = 1;
    const std::vector<float> frames = mel_frames_of(samples, 80, samples.size());
    EXPECT_EQ(frames.size(), 11u * 80);
    EXPECT_GT(frames[10 * 80 + 79], -9);
}

TEST(LogMel, DigitalSilenceIsMinusTen) {
    for (float x : mel_frames_of(std::vector<float>(16000, 0.0f), 80, 16000)) ASSERT_EQ(x, -10.0f);
}

TEST(LogMel, FullScaleAndBeyondStaysFinite) {
    std::vector<float> samples(4000);
    for (size_t i = 0; i < samples.size(); ++i) samples[i] = i % 2 ? 3e38f : -3e38f;
    for (float x : mel_frames_of(samples, 128, 4000)) ASSERT_TRUE(std::isfinite(x));
}

TEST(LogMel, RefusesOtherNumbersOfMels) { EXPECT_THROW(LogMel(64), Error); }

}  // namespace
}  // namespace hark
