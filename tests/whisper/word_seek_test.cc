// Where words move the next window, and which segments look hallucinated: tables, no model.
#include "whisper/transcribe/word_seek.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hark::whisper {
namespace {

struct Times {
    double start, end;
};

// A word_seek_segment of words with these times and one probability.
Segment word_seek_segment(const std::vector<Times>& words, double probability) {
    Segment word_seek_segment;
    word_seek_segment.words.emplace();
    for (const Times& times : words)
        word_seek_segment.words->push_back({" word", times.start, times.end, probability});
    word_seek_segment.start = words.front().start;
    word_seek_segment.end = words.back().end;
    return word_seek_segment;
}

// Words of about half a second.
Segment sound(double start, double end) {
    const int count = std::max(2, static_cast<int>(2 * (end - start)));
    std::vector<Times> words;
    for (int i = 0; i < count; ++i)
        words.push_back(
            {start + i * (end - start) / count, start + (i + 1) * (end - start) / count});
    return word_seek_segment(words, 0.9);
}

// Improbable words score 1 each.
Segment invented(double start, double end) {
    Segment made = sound(start, end);
    for (Word& word : *made.words) word.probability = 0.1;
    return made;
}

Segment without_words(double start, double end) {
    Segment word_seek_segment;
    word_seek_segment.words.emplace();
    word_seek_segment.start = start;
    word_seek_segment.end = end;
    return word_seek_segment;
}

// A whole window at 60 s of a recording of 200 s; the speech before ended at 59 s.
WordWindow window(bool single_ending = false) {
    return {6000, 3000, 8900, 20000, single_ending, 59.0};
}

struct Sought {
    int64_t seek;
    bool discard;
    size_t kept;
    bool operator==(const Sought&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Sought& s) {
    return out << s.seek << (s.discard ? " discarded, " : " kept, ") << s.kept;
}

Sought sought(const std::vector<Segment>& segments, std::optional<double> silence = {},
              const WordWindow& place = window()) {
    const WordSeek found = seek_by_words(segments, place, silence);
    return {found.seek, found.discard, found.kept};
}

TEST(LooksInvented, WordsThatAreImprobableShortOrLong) {
    EXPECT_FALSE(looks_hallucinated(sound(0, 2)));
    EXPECT_TRUE(looks_hallucinated(invented(0, 2)));
    EXPECT_FALSE(looks_hallucinated(without_words(0, 2)));
    EXPECT_FALSE(looks_hallucinated(Segment{}));
    // (0.133 - 0.05) * 15 = 1.245 a word.
    EXPECT_TRUE(looks_hallucinated(word_seek_segment({{0, 0.05}, {0.05, 0.1}}, 0.9)));
    // 3 s too long.
    EXPECT_TRUE(looks_hallucinated(word_seek_segment({{0, 5}, {5, 5.5}, {5.5, 6}, {6, 6.5}}, 0.9)));
    EXPECT_FALSE(
        looks_hallucinated(word_seek_segment({{0, 4.9}, {5, 5.5}, {5.5, 6}, {6, 6.5}}, 0.9)));
}

TEST(LooksInvented, TheFirstEightWordsCountAndPunctuationDoesNot) {
    std::vector<Times> times;
    for (int i = 0; i < 12; ++i) times.push_back({0.5 * i, 0.5 * i + 0.5});
    Segment late = word_seek_segment(times, 0.9);
    for (size_t i = 8; i < 12; ++i) (*late.words)[i].probability = 0.1;
    EXPECT_FALSE(looks_hallucinated(late));
    for (size_t i = 5; i < 8; ++i) (*late.words)[i].probability = 0.1;
    EXPECT_TRUE(looks_hallucinated(late));
    for (size_t i = 5; i < 8; ++i) (*late.words)[i].text = "?!";  // not in this order: it counts
    EXPECT_TRUE(looks_hallucinated(late));
    for (size_t i = 0; i < 5; ++i) (*late.words)[i].text = "!";
    for (size_t i = 5; i < 12; ++i) (*late.words)[i].text = " word";
    for (size_t i = 5; i < 12; ++i) (*late.words)[i].probability = i < 7 ? 0.1 : 0.9;
    EXPECT_FALSE(looks_hallucinated(late));  // 2 of 7
}

TEST(EndOfWords, IsTheLastWordsOrTheLastSegments) {
    EXPECT_EQ(end_of_words({}), std::nullopt);
    EXPECT_EQ(end_of_words(std::vector<Segment>{sound(1, 2), without_words(3, 4)}), 2.0);
    EXPECT_EQ(end_of_words(std::vector<Segment>{without_words(3, 4)}), 4.0);
}

TEST(SeekByWords, BehindTheLastWordUnlessNothingFollowsIt) {
    EXPECT_EQ(sought({sound(61, 65)}), (Sought{6500, false, 1}));
    EXPECT_EQ(sought({sound(61, 65)}, {}, window(true)), (Sought{8900, false, 1}));
    // Words that end before the window leave it to the timestamps.
    EXPECT_EQ(sought({sound(58, 60)}), (Sought{8900, false, 1}));
    // The loop advances even if the words end in the window's first frame.
    EXPECT_EQ(sought({sound(58, 60.001)}), (Sought{9000, false, 1}));
    EXPECT_EQ(sought({}), (Sought{8900, false, 0}));
}

TEST(SeekByWords, SilenceBehindTheLastWord) {
    EXPECT_EQ(sought({sound(61, 85)}, 4.0), (Sought{8500, false, 1}));  // 5 s are left
    EXPECT_EQ(sought({sound(61, 85)}, 6.0), (Sought{9000, false, 1}));
    EXPECT_EQ(sought({sound(61, 85)}, 4.0, window(true)), (Sought{8900, false, 1}));
}

TEST(SeekByWords, AnInventedBeginningBehindSilenceIsHeardAgain) {
    EXPECT_EQ(sought({without_words(60, 61), invented(65, 66), sound(66, 80)}, 2.0),
              (Sought{6500, true, 0}));
    EXPECT_EQ(sought({invented(65, 66), sound(66, 80)}), (Sought{8000, false, 2}));
    EXPECT_EQ(sought({sound(65, 66), sound(66, 80)}, 2.0), (Sought{8000, false, 2}));
}

TEST(SeekByWords, AnInventedSegmentInSilenceIsDropped) {
    // 3 s of silence on both sides.
    EXPECT_EQ(sought({sound(61, 65), invented(68, 69), sound(72, 80)}, 2.0),
              (Sought{6800, false, 1}));
    // Speech directly after it, or directly before it.
    EXPECT_EQ(sought({sound(61, 65), invented(68, 69), sound(69.5, 80)}, 2.0),
              (Sought{8000, false, 3}));
    EXPECT_EQ(sought({sound(61, 65), invented(65.5, 69), sound(72, 80)}, 2.0),
              (Sought{8000, false, 3}));
    // Another hallucinated word_seek_segment after it counts as silence.
    EXPECT_EQ(sought({sound(61, 65), invented(68, 69), invented(69.5, 70)}, 2.0),
              (Sought{6800, false, 1}));
    // So are the window's edges; the next window begins a second on at least.
    EXPECT_EQ(sought({invented(60.5, 61), sound(65, 80)}, 2.0), (Sought{6100, false, 0}));
    EXPECT_EQ(sought({sound(61, 83), invented(86, 88.5)}, 2.0), (Sought{8600, false, 1}));
}

TEST(SeekByWords, AtTheEndOfTheRecordingNothingIsHeardAgain) {
    WordWindow last = window();
    last.content_frames = 9050;
    const std::vector<Segment> segments = {sound(61, 83), invented(86, 88.5)};
    EXPECT_EQ(sought(segments, 1.9, last), (Sought{8600, false, 1}));
    EXPECT_EQ(sought(segments, 2.1, last), (Sought{9050, false, 1}));
}

}  // namespace
}  // namespace hark::whisper
