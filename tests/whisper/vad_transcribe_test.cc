// Recordings of silence, noise, tones and speech through --vad, and windows on their own.
#include <cmath>
#include <iterator>
#include <set>

#include "core/random.h"
#include "whisper/transcripts.h"

namespace hark::test {
namespace {

constexpr double kRate = 16000;

// Clips with sounds between them, and the clips' times in seconds.
struct Mixed {
    std::vector<float> samples;
    std::vector<std::pair<double, double>> speech;
    std::vector<std::string> clips;  // their files
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
        mixed.clips.push_back(kClips[random.next() % kClips.size()]);
        const std::vector<float> clip =
            as_float(read_plain_wav(samples_dir() / mixed.clips.back()));
        const double begin = static_cast<double>(mixed.samples.size()) / kRate;
        mixed.samples.insert(mixed.samples.end(), clip.begin(), clip.end());
        mixed.speech.push_back({begin, static_cast<double>(mixed.samples.size()) / kRate});
    }
    add_sound(mixed.samples, 1, 5, random);
    return mixed;
}

using WordSet = std::multiset<std::string>;

// Lower-case letters alone.
WordSet words_of(const std::string& text) {
    WordSet words;
    std::string word;
    for (const char c : text + " ") {
        if (std::isalpha(static_cast<unsigned char>(c)))
            word += static_cast<char>(std::tolower(c));
        else if (!word.empty())
            words.insert(std::exchange(word, ""));
    }
    return words;
}

WordSet shared_words(const WordSet& a, const WordSet& b) {
    WordSet both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
    return both;
}

// The words that are said in a clip of samples/.
WordSet said_in(const std::string& clip) {
    std::istringstream rows(read_text(samples_dir() / "transcripts.tsv"));
    for (std::string row; std::getline(rows, row);)
        if (row.starts_with(clip + '\t')) return words_of(row.substr(row.rfind('\t')));
    throw std::runtime_error("no transcript of " + clip);
}

// The transcript of a mixture, with the words' times. It is made once for all tests.
const Outcome& transcript_of(uint64_t seed, bool vad) {
    static std::map<std::pair<uint64_t, bool>, Outcome> kept;
    const auto [place, is_new] = kept.try_emplace({seed, vad});
    if (!is_new) return place->second;
    TranscribeOptions options;
    options.language = "en";
    options.fallback_temperatures = {};
    options.words.timestamps = true;
    options.vad = vad;
    return place->second = run_all({mel_of(mixed(seed).samples)}, options, "auto").at(0);
}

// The correct words found in each clip: those whose middle is in it, within 0.3 s, and that are in
// its transcript.
std::vector<WordSet> right_words(const Mixed& recording, const Outcome& ours) {
    std::vector<WordSet> right;
    for (size_t i = 0; i < recording.clips.size(); ++i) {
        const auto& [begin, end] = recording.speech[i];
        WordSet found;
        for (const Segment& segment : ours.segments)
            for (const Word& word : *segment.words) {
                const double middle = (word.start + word.end) / 2;
                if (middle >= begin - 0.3 && middle <= end + 0.3) found.merge(words_of(word.text));
            }
        right.push_back(shared_words(found, said_in(recording.clips[i])));
    }
    return right;
}

class Vad : public testing::TestWithParam<uint64_t> {};

TEST_P(Vad, NoTextOutsideSpeechAndNoSpeechWithoutText) {
    const Mixed recording = mixed(GetParam());
    const Outcome& ours = transcript_of(GetParam(), true);
    std::vector<bool> found(recording.speech.size());
    for (const Segment& segment : ours.segments)
        for (const Word& word : *segment.words) {
            bool inside = false;
            for (size_t i = 0; i < recording.speech.size(); ++i) {
                const auto& [begin, end] = recording.speech[i];
                if (word.start < begin - 0.3 || word.end > end + 0.3) continue;
                inside = true;
                found[i] = true;
            }
            EXPECT_TRUE(inside) << word.text << " " << word.start << " " << word.end;
        }
    for (size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(found[i]) << "no word of " << recording.speech[i].first;
    for (size_t i = 1; i < ours.segments.size(); ++i)
        EXPECT_GE(ours.segments[i].start, ours.segments[i - 1].start);
}

// --vad loses no correct word. The demo model was not trained on speech next to such sounds, and
// its text depends on the window: a clip with fewer than 8 correct words may lose one; other clips
// must keep all of theirs.
TEST_P(Vad, NoRightWordIsLost) {
    const Mixed recording = mixed(GetParam());
    const std::vector<WordSet> without = right_words(recording, transcript_of(GetParam(), false));
    const std::vector<WordSet> with = right_words(recording, transcript_of(GetParam(), true));
    size_t found_without = 0, found_with = 0;
    for (size_t i = 0; i < without.size(); ++i) {
        const size_t kept = shared_words(without[i], with[i]).size();
        const size_t lost = without[i].size() - kept;
        EXPECT_LE(lost, without[i].size() < 8 ? 1u : 0u)
            << recording.clips[i] << " at " << recording.speech[i].first << " s";
        found_without += without[i].size();
        found_with += with[i].size();
    }
    EXPECT_GT(found_without, 20u);
    EXPECT_GT(found_with, found_without);
}

INSTANTIATE_TEST_SUITE_P(Mixed, Vad, testing::Range<uint64_t>(1, all_recordings() ? 5 : 3));

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

// Independent windows cover every clip too, and the text is in the recording's order.
TEST(VadTranscribe, IndependentWindowsHearEverything) {
    const Mixed recording = mixed(5);
    TranscribeOptions options;
    options.windows = "independent";
    options.language = "en";
    for (const bool vad : {false, true}) {
        options.vad = vad;
        options.batch_size = vad ? 4 : 1;
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

}  // namespace
}  // namespace hark::test
