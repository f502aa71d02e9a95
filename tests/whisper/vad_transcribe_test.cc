// Recordings of silence, noise, tones and speech through --vad, and windows on their own.
#include <cmath>

#include "core/random.h"
#include "whisper/transcripts.h"

namespace hark::test {
namespace {

constexpr double kRate = 16000;

// Clips with sounds between them; where the clips lie, in seconds.
struct Mixed {
    std::vector<float> samples;
    std::vector<std::pair<double, double>> speech;
};

void add_sound(std::vector<float>& samples, int kind, double seconds, Random& random) {
    const auto count = static_cast<size_t>(seconds * kRate);
    const double hertz = 200 + 800 * random.uniform();
    for (size_t i = 0; i < count; ++i) {
        const double noise = 2 * random.uniform() - 1;
        const double tone = std::sin(2 * M_PI * hertz * static_cast<double>(i) / kRate);
        const double value = kind == 0 ? 0 : kind == 1 ? 0.3 * noise : 0.3 * tone;
        samples.push_back(static_cast<float>(value));
    }
}

Mixed mixed(uint64_t seed) {
    static const std::vector<std::string> kClips = {"harbour.wav", "road.wav",   "minister.wav",
                                                    "hat.wav",     "lights.wav", "mountain.wav"};
    Random random(seed);
    Mixed mixed;
    for (int i = 0; i < 8; ++i) {
        add_sound(mixed.samples, i % 3, 2 + 6 * random.uniform(), random);
        const std::vector<float> clip =
            as_float(read_plain_wav(samples_dir() / kClips[random.next() % kClips.size()]));
        const double begin = static_cast<double>(mixed.samples.size()) / kRate;
        mixed.samples.insert(mixed.samples.end(), clip.begin(), clip.end());
        mixed.speech.push_back({begin, static_cast<double>(mixed.samples.size()) / kRate});
    }
    add_sound(mixed.samples, 1, 5, random);
    return mixed;
}

class Vad : public testing::TestWithParam<uint64_t> {};

TEST_P(Vad, NoTextOutsideSpeechAndNoSpeechWithoutText) {
    const Mixed recording = mixed(GetParam());
    TranscribeOptions options;
    options.vad = true;
    options.words.timestamps = true;
    const Outcome ours = run_all({mel_of(recording.samples)}, options, "auto").at(0);
    std::vector<bool> heard(recording.speech.size());
    for (const Segment& segment : ours.segments)
        for (const Word& word : *segment.words) {
            bool inside = false;
            for (size_t i = 0; i < recording.speech.size(); ++i) {
                const auto& [begin, end] = recording.speech[i];
                if (word.start < begin - 0.3 || word.end > end + 0.3) continue;
                inside = true;
                heard[i] = true;
            }
            EXPECT_TRUE(inside) << word.text << " " << word.start << " " << word.end;
        }
    for (size_t i = 0; i < heard.size(); ++i)
        EXPECT_TRUE(heard[i]) << "no word of " << recording.speech[i].first;
    for (size_t i = 1; i < ours.segments.size(); ++i)
        EXPECT_GE(ours.segments[i].start, ours.segments[i - 1].start);
}

INSTANTIATE_TEST_SUITE_P(Mixed, Vad, testing::Values(1, 2, 3, 4));

TEST(VadTranscribe, NoiseAloneGivesNoText) {
    std::vector<float> samples;
    Random random(1);
    for (int kind : {1, 2, 0, 1}) add_sound(samples, kind, 15, random);
    TranscribeOptions options;
    options.vad = true;
    const std::vector<Outcome> ours = run_all({mel_of(samples), mel_of({})}, options, "auto");
    ASSERT_EQ(ours.size(), 2u);
    EXPECT_EQ(ours[0].text, "");
    EXPECT_EQ(ours[1].text, "");
}

// Windows on their own hear every clip too, and the order of the text is that of the recording.
TEST(VadTranscribe, IndependentWindowsHearEverything) {
    const Mixed recording = mixed(5);
    TranscribeOptions options;
    options.windows = "independent";
    for (const bool vad : {false, true}) {
        options.vad = vad;
        for (const int64_t batch : {1, 4}) {
            options.batch = batch;
            const Outcome ours = run_all({mel_of(recording.samples)}, options, "auto").at(0);
            ASSERT_GE(ours.segments.size(), 5u);
            std::string text;
            for (size_t i = 0; i < ours.segments.size(); ++i) {
                text += ours.segments[i].text;
                if (i == 0) continue;
                EXPECT_GE(ours.segments[i].start, ours.segments[i - 1].start);
            }
            EXPECT_EQ(text, ours.text);
        }
    }
}

}  // namespace
}  // namespace hark::test
