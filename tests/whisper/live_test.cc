// Agreement, final segments and cuts of live transcription: tables of words, no model.
#include "whisper/transcribe/live.h"

#include <gtest/gtest.h>

#include <sstream>
#include <tuple>

namespace hark::test {
namespace {

using namespace hark::whisper;

// Words of half a second each from `at` on, without gaps; "|" stands for the end of a segment, "_"
// for a second of silence.
std::vector<LiveWord> words(double at, const std::string& text) {
    std::vector<LiveWord> words;
    std::istringstream in(text);
    for (std::string word; in >> word;) {
        if (word == "|") {
            words.back().ends_segment = true;
        } else if (word == "_") {
            at += 1;
        } else {
            words.push_back({{" " + word, at, at + 0.5, 1}, false});
            at += 0.5;
        }
    }
    return words;
}

// Heard up to `end`, of which the last `quiet` seconds are quiet.
Hearing heard(std::vector<LiveWord> words, double end, double quiet) {
    if (quiet < kLiveQuiet) return {std::move(words), end};
    return {std::move(words), end, end - quiet, end};
}

std::string text_of(const std::vector<LiveSegment>& segments) {
    std::string text;
    for (const LiveSegment& segment : segments) text += segment.text + " /";
    return text;
}

// "agreed[rest]" of what is not final.
std::string shown(const LiveText& text) {
    const std::optional<LivePartial> partial = text.partial();
    if (!partial) return "";
    const std::string& all = partial->segment.text;
    return all.substr(0, partial->agreed) + "[" + all.substr(partial->agreed) + "]";
}

TEST(LiveText, TheBeginningThatTwoHearingsShareIsAgreed) {
    struct Case {
        const char *before, *newer;
        bool quiet;
        size_t agreed;
    };
    for (const Case& c : std::vector<Case>{
             {"", "", true, 0},
             {"", "the old man", false, 0},
             {"the old man", "the old man", true, 3},
             {"the old man", "the old man", false, 2},      // the last may have been cut off
             {"the old.", "the old man sat", false, 1},     // in either
             {"the old.", "the old man sat", true, 2},      // a mark at a cut is nothing
             {"the old man sat", "the old.", true, 1},      // but the newer one's would stay
             {"The old man", "the Old, man sat", true, 3},  // neither is case
             {"the old man", "the cold man sat", true, 1},
             {"der Ältere ging", "der ältere ging weg", false, 2},
         })
        EXPECT_EQ(agreeing(words(0, c.before), words(0, c.newer), c.quiet ? 99 : 0), c.agreed)
            << c.before << " / " << c.newer;
}

TEST(LiveText, WhatWasAgreedIsFoundInWhatIsHeard) {
    struct Case {
        const char *said, *heard;
        size_t words;
    };
    for (const Case& c : std::vector<Case>{
             {"", "a b", 0},
             {"a b", "a b c", 2},
             {"a b", "a b", 2},
             {"a b", "a", 1},
             {"a b", "", 0},
             {"a b c", "a x c d", 3},   // one was another word
             {"a b c", "a c d", 2},     // one was left out
             {"a b", "a x b c", 3},     // one has come in
             {"no no", "no no no", 2},  // the same word again
             {"a b c", "a b x d", 3},   // c is x, by its time, and not left out
             {"a b c", "x y", 2},       // nothing in common: by the time
             {"a b c", "_ _ x y", 0},   // all is later
         })
        EXPECT_EQ(words_that_say(words(0, c.said), words(0, c.heard)), c.words)
            << c.said << " / " << c.heard;
}

TEST(LiveText, ASentenceIsFinalWhenTwoHearingsHaveItAndQuietFollows) {
    LiveText text;
    text.hear(heard(words(0, "he was a very old."), 2.5, 0));
    EXPECT_EQ(shown(text), "[ he was a very old.]");
    text.hear(heard(words(0, "he was a very old man and he"), 4, 0));
    EXPECT_EQ(shown(text), " he was a very[ old man and he]");
    text.hear(heard(words(0, "he was a very old man and he smiled."), 5, 0.5));
    EXPECT_EQ(shown(text), " he was a very old man and he[ smiled.]");
    EXPECT_TRUE(text.take_finals().empty());
    EXPECT_TRUE(text.in_doubt());
    text.confirm(words(0, "he was a very old man and he smiled."));
    EXPECT_EQ(text_of(text.take_finals()), " he was a very old man and he smiled. /");
    EXPECT_FALSE(text.partial());
    EXPECT_FALSE(text.in_doubt());
    // The sound is kept until it is certain that nothing more belongs to the sentence.
    EXPECT_EQ(text.begin(), 0);
    text.hear(heard(words(0, "he was a very old man and he smiled."), 6, 1.2));
    EXPECT_DOUBLE_EQ(text.begin(), 5.4);  // the middle of the quiet
    EXPECT_EQ(text.take_left(), " he was a very old man and he smiled.");
    EXPECT_TRUE(text.take_finals().empty());  // nothing comes twice
}

TEST(LiveText, WordsThatAreAgreedStayThoughTheyAreHeardOtherwise) {
    LiveText text;
    text.hear(heard(words(0, "the week had"), 1.5, 0));
    text.hear(heard(words(0, "the week had changed and"), 2.5, 0));
    EXPECT_EQ(shown(text), " the week[ had changed and]");
    text.hear(heard(words(0, "the wind had changed and then"), 3, 0));
    EXPECT_EQ(shown(text), " the week had changed[ and then]");
}

TEST(LiveText, ASegmentEndsWhereTheModelOrAPauseSaysSo) {
    struct Case {
        const char *heard, *finals, *rest;
    };
    for (const Case& c : std::vector<Case>{
             {"one two | three four five", " one two /", " three four[ five]"},
             {"one two _ three four five", " one two /", " three four[ five]"},
             {"one two. Three four? five", " one two. / Three four? /", "[ five]"},
             {"one \"two.\" Three", " one \"two.\" /", "[ Three]"},
             {"eins zwei。 drei vier", " eins zwei。 /", " drei[ vier]"},
             {"one two three", "", " one two[ three]"},
         }) {
        LiveText text;
        text.hear(heard(words(0, c.heard), 4, 0));
        text.confirm(words(0, c.heard));
        EXPECT_EQ(text_of(text.take_finals()), c.finals);
        EXPECT_EQ(shown(text), c.rest);
    }
}

TEST(LiveText, APauseEndsWhatHasNoMark) {
    for (const auto& [end, quiet, is_final] :
         {std::tuple{2.0, 0.5, false}, {2.5, 1.0, true}, {3.5, 0.0, false}}) {
        LiveText text;
        text.hear(heard(words(0, "one two three"), end, quiet));
        text.confirm(words(0, "one two three"));
        EXPECT_EQ(text_of(text.take_finals()), is_final ? " one two three /" : "") << end;
    }
    // Speech that has begun again and is not heard yet does not hide the pause.
    LiveText begun;
    begun.hear({words(0, "one two."), 2.5, 1.0, 2.2});
    begun.confirm(words(0, "one two."));
    EXPECT_EQ(text_of(begun.take_finals()), " one two. /");
    EXPECT_DOUBLE_EQ(begun.begin(), 1.6);
    // Where noise hides the quiet, two seconds without a word do.
    LiveText text;
    text.hear(heard(words(0, "one two three four"), 2, 0));
    text.hear(heard(words(0, "one two three four five"), 3, 0));
    text.hear(heard(words(0, "one two three"), 4, 0));
    EXPECT_EQ(text_of(text.take_finals()), " one two three /");
}

TEST(LiveText, TheSoundIsCutInTheGapBehindTheLastFinalSegment) {
    LiveText text;
    text.hear(heard(words(0, "one two. _ three four."), 5, 0));
    text.confirm(words(0, "one two. _ three four."));
    EXPECT_DOUBLE_EQ(text.begin(), 1.5);  // of the gap from 1 to 2
    EXPECT_EQ(text.take_left(), " one two.");
    // What is heard next begins behind the cut.
    text.hear(heard(words(2, "three four. five"), 6, 0));
    text.confirm(words(2, "three four. five"));
    EXPECT_EQ(text_of(text.take_finals()), " one two. / three four. /");
    // No gap, no cut: the next word might lose its beginning.
    EXPECT_DOUBLE_EQ(text.begin(), 1.5);
    EXPECT_EQ(shown(text), "[ five]");
}

TEST(LiveText, WordsWithoutEndAreFinalWhenTheyAreLong) {
    std::string said = "w0";
    LiveText text;
    double begin = 0;
    for (int i = 1; i <= 40; ++i) {
        said += " w" + std::to_string(i);
        if (text.begin() > 0) break;
        text.hear(heard(words(0, said), 0.5 * (i + 1), 0));
        begin = text.begin();
    }
    EXPECT_GT(begin, 15);
    EXPECT_LT(begin, 16.1);
    const std::vector<LiveSegment> finals = text.take_finals();
    ASSERT_EQ(finals.size(), 1u);
    EXPECT_EQ(finals[0].end, begin);
    EXPECT_EQ(finals[0].text, text.take_left());
}

TEST(LiveText, SilenceIsLetGoOfButItsLastSecond) {
    LiveText text;
    text.hear(heard({}, 0.5, 0.5));
    EXPECT_EQ(text.begin(), 0);
    text.hear(heard({}, 20, 20));
    EXPECT_EQ(text.begin(), 19);
    text.hear(heard(words(19, "a"), 21, 0));
    text.hear(heard({}, 22, 0));  // heard once, and not again: not silence yet
    EXPECT_EQ(text.begin(), 19);
    text.hear(heard({}, 23, 0));
    EXPECT_EQ(text.begin(), 22);
    EXPECT_FALSE(text.partial());
    EXPECT_TRUE(text.take_finals().empty());
}

TEST(LiveText, TheEndMakesAllOfItFinal) {
    LiveText text;
    text.hear(heard(words(0, "one two. three"), 2, 0));
    text.finish();
    EXPECT_EQ(text_of(text.take_finals()), " one two. / three /");
    EXPECT_EQ(text.begin(), 1.5);  // what has begun behind the words may be heard later
    EXPECT_FALSE(text.partial());
    text.finish();
    EXPECT_TRUE(text.take_finals().empty());
}

TEST(LiveText, TimesOfFinalsNeverRunBack) {
    LiveText text;
    text.hear(heard(words(0, "one two. three"), 2, 0));
    text.confirm(words(0, "one two. three"));
    text.hear(heard(words(0.2, "one two. three four."), 2.5, 1));
    // The next segment is heard to begin before the last one ended.
    text.hear(heard(words(0.6, "three four. five six."), 3.5, 1));
    text.finish();
    double behind = 0;
    std::string all;
    for (const LiveSegment& segment : text.take_finals()) {
        EXPECT_EQ(segment.start, segment.words.front().start);
        EXPECT_EQ(segment.end, segment.words.back().end);
        for (const Word& word : segment.words) {
            EXPECT_GE(word.start, behind);
            EXPECT_GE(word.end, word.start);
            behind = word.end;
            all += word.text;
        }
    }
    EXPECT_EQ(all, " one two. three four. five six.");
}

}  // namespace
}  // namespace hark::test
