// The default detector on recordings whose speech is known: all of it found, nothing else.
#include "speech/detector.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/error.h"

#include "speech/sounds.h"

namespace hark::test {
namespace {

constexpr std::array kClips = {
    "harbour.wav",  "road.wav",   "minister.wav", "hat.wav",   "lights.wav", "mountain.wav",
    "alarm.wav",    "sea.wav",    "prices.wav",   "key.wav",   "train.wav",  "music.wav",
    "stranger.wav", "answer.wav", "nacht.wav",    "vater.wav", "maison.wav", "roi.wav"};

std::vector<Samples> clips() {
    std::vector<Samples> all;
    for (const char* name : kClips) all.push_back(as_float(read_plain_wav(samples_dir() / name)));
    return all;
}

// All clips, 1 to 4 s between them, each at a root mean square of `level`.
Scene speech(Random& random, const std::vector<Samples>& clips, double level) {
    double seconds = 4;
    for (const Samples& clip : clips) seconds += static_cast<double>(clip.size()) / kRate + 4;
    Scene scene(seconds);
    int64_t at = count_of(between(random, 0, 2));
    for (const Samples& clip : clips) {
        scene.speak(at, at_level(clip, level));
        at += std::ssize(clip) + count_of(between(random, 1, 4));
    }
    scene.samples.resize(at);
    scene.voiced.resize(at / Detector::kStep);
    return scene;
}

// The rows of the tables in docs/speech.md.
void print(const std::string& name, const Score& s) {
    std::printf("%-28s voiced %5.1f s, missed %4.1f %%, lost %d of %d runs, outside %5.2f s\n",
                name.c_str(), s.voiced, s.voiced > 0 ? 100 * s.missed / s.voiced : 0, s.lost,
                s.runs, s.outside);
}

// Sounds that are too much like speech, as docs/speech.md says.
bool deceives(const std::string& sound) {
    return sound == "fading chords" || sound == "plucked music";
}

TEST(Detector, FindsSpeechInNoise) {
    const std::vector<Samples> all = clips();
    const double silent = 99;
    for (double snr : {silent, 20.0, 10.0, 5.0, 0.0}) {
        for (const Sound& noise : {Sound{"white", white}, {"pink", pink}, {"brown", brown}}) {
            Random random(static_cast<uint64_t>(snr));
            Scene scene = speech(random, all, 0.05);
            const Samples drawn = noise.make(random, std::ssize(scene.samples));
            if (snr < silent)
                add(scene.samples, 0, at_level(drawn, 0.05 * std::pow(10, -snr / 20)));
            const Score s = score(scene, detect(scene.samples));
            print(snr < silent ? concat(noise.name, " noise, ", snr, " dB") : "no noise", s);
            EXPECT_LE(s.outside, 0.1);
            if (snr >= 5) {
                EXPECT_LE(s.missed, 0.05 * s.voiced);
                EXPECT_EQ(s.lost, 0);
            }
            if (snr == silent) break;
        }
    }
}

TEST(Detector, HearsNoSpeechInOtherSounds) {
    for (const Sound& sound : sounds()) {
        Score total;
        for (uint64_t seed = 1; seed <= 4; ++seed) {
            Random random(seed);
            const Samples made = sound.make(random, count_of(15));
            for (double level : {0.01, 0.1, 0.5}) {
                Scene scene(16);
                add(scene.samples, seed % 2 ? 0 : count_of(1), at_level(made, level));
                total += score(scene, detect(scene.samples));
            }
        }
        print(concat("180 s of ", sound.name), total);
        EXPECT_LE(total.outside, deceives(sound.name) ? 18 : 0) << sound.name;
    }
    EXPECT_TRUE(detect(Samples(160000)).empty());
}

TEST(Detector, TellsSpeechFromSoundsAroundIt) {
    const std::vector<Samples> all = clips();
    for (const Sound& sound : sounds()) {
        Score total;
        for (uint64_t seed = 1; seed <= 6; ++seed) {
            Random random(seed);
            Scene scene(30);
            int64_t at = 0;
            for (size_t i = 0; i < 3; ++i) {
                const double level = std::pow(10, between(random, -2.2, -0.6));
                const double seconds = between(random, 1.6, 4);
                add(scene.samples, at, at_level(sound.make(random, count_of(seconds)), level));
                at += count_of(seconds + 0.4);
                const Samples& clip = all[(3 * seed + i) % all.size()];
                scene.speak(at, at_level(clip, std::pow(10, between(random, -2, -0.9))));
                at += std::ssize(clip) + count_of(0.4);
            }
            total += score(scene, detect(scene.samples));
        }
        print(concat("speech among ", sound.name), total);
        EXPECT_LE(total.missed, 0.01 * total.voiced) << sound.name;
        EXPECT_EQ(total.lost, 0) << sound.name;
        EXPECT_LE(total.outside, deceives(sound.name) ? 20 : 0) << sound.name;
    }
}

// The kinds that whisper-transcribe's tests decode.
TEST(Detector, KnowsTheRecordingsMadeByRule) {
    for (const char* kind : {"silence", "quiet_noise", "loud_noise", "tones"})
        EXPECT_TRUE(detect(assemble_recording(kind, 3, 40, samples_dir())).empty()) << kind;
    for (const char* kind : {"speech", "babble"})
        EXPECT_FALSE(detect(assemble_recording(kind, 3, 40, samples_dir())).empty()) << kind;
}

TEST(Detector, CutsDoNotMatter) {
    Random random(5);
    const Samples samples = assemble_recording(9, 31.7, samples_dir());
    for (int n_mels : {80, 128}) {
        const std::vector<float> frames = log_mel_of(samples, n_mels);
        Detector whole(n_mels), pieces(n_mels);
        std::vector<float> expected, found;
        whole.push(frames, expected);
        whole.finish(expected);
        ASSERT_EQ(expected.size(), frames.size() / static_cast<size_t>(n_mels));
        for (size_t at = 0; at < frames.size();) {
            const size_t some = static_cast<size_t>(n_mels) * size_t(700 * random.uniform());
            const size_t count = std::min(frames.size() - at, some);
            pieces.push(std::span(frames).subspan(at, count), found);
            at += count;
            // Known 4 s after the frame at the latest.
            EXPECT_LE(at / static_cast<size_t>(n_mels), found.size() + 400);
        }
        pieces.finish(found);
        EXPECT_TRUE(found == expected);
    }
}

// Parts that threads take: the same bits as one detector's, and regions in any number of threads.
TEST(Detector, PartsAreTheWhole) {
    constexpr int kMels = 80;
    Random random(7);
    const Scene scene = speech(random, clips(), 0.05);
    const std::vector<float> all = log_mel_of(scene.samples, kMels);
    constexpr int64_t kBlock = Detector::kBlock;
    for (const int64_t frames :
         {kBlock - 1, 2 * kBlock, 4 * kBlock + 1, 20 * kBlock + 150, std::ssize(all) / kMels}) {
        SCOPED_TRACE(frames);
        const std::span<const float> recording(all.data(), static_cast<size_t>(frames * kMels));
        Detector detector(kMels);
        std::vector<float> whole, parts;
        detector.push(recording, whole);
        detector.finish(whole);
        for (int64_t begin = 0; begin < frames; begin += 3 * kBlock) {
            const std::vector<float> part = Detector::probabilities_of(
                recording, kMels, begin, std::min(begin + 3 * kBlock, frames));
            parts.insert(parts.end(), part.begin(), part.end());
        }
        EXPECT_EQ(parts, whole);
        const int64_t samples = frames * Detector::kStep;
        const std::vector<Region> regions = find_regions(whole, Detector::kStep, samples, {});
        for (const int threads : {1, 3})
            EXPECT_EQ(speech_in_log_mel(recording, kMels, samples, {}, threads), regions);
    }
}

TEST(Detector, HearsTheSameInMoreBands) {
    const Samples samples = assemble_recording(4, 40, samples_dir());
    const std::vector<Region> few = detect(samples, 80), more = detect(samples, 128);
    ASSERT_EQ(few.size(), more.size());
    for (size_t i = 0; i < few.size(); ++i) {
        EXPECT_NEAR(few[i].begin, more[i].begin, 4800);
        EXPECT_NEAR(few[i].end, more[i].end, 4800);
    }
    EXPECT_THROW(Detector(40), Error);
    const std::vector<float> frames(size_t{40} * 10 * Detector::kBlock);
    for (const int threads : {1, 2})
        EXPECT_THROW(speech_in_log_mel(frames, 40, kSampleRate, {}, threads), Error);
}

TEST(Detector, HearsAWordAlone) {
    for (const Samples& clip : clips()) {
        const auto middle = clip.begin() + std::ssize(clip) / 2;
        const Samples word(middle - 2400, middle + 2400);  // 0.3 s
        EXPECT_EQ(detect(word).size(), 1u);
    }
    EXPECT_TRUE(detect({}).empty());
    EXPECT_TRUE(detect(Samples(100)).empty());
}

}  // namespace
}  // namespace hark::test
