// Agreement, final segments and cuts of live transcription: tables of words, no model.
#include "whisper/transcribe/live.h"

#include <gtest/gtest.h>

#include <sstream>
#include <tuple>

namespace hark::test {
namespace {

using namespace hark::whisper;

// Words of half a second each from `at` on, without gaps; "|" means the end of a segment, "_" a
// second of silence.
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

// A hypothesis up to `end`, of which the last `quiet` seconds are quiet.
Hypothesis hypothesis(std::vector<LiveWord> words, double end, double quiet) {
    if (quiet < kLiveQuiet) return {std::move(words), end};
    return {std::move(words), end, end - quiet, end};
}

std::string text_of(const std::vector<LiveSegment>& segments) {
    std::string text;
    for (const LiveSegment& segment : segments) text += segment.text + " /";
    return text;
}

// "committed[rest]" of the text that is not final.
std::string shown(const LiveText& text) {
    const std::optional<LivePartial> partial = text.partial();
    if (!partial) return "";
    const std::string& all = partial->segment.text;
    return all.substr(0, partial->committed) + "[" + all.substr(partial->committed) + "]";
}

TEST(LiveText, TheBeginningThatTwoHearingsShareIsAgreed) {
    struct Case {
        const char *before, *newer;
        bool quiet;
        size_t shared;
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
        EXPECT_EQ(common_prefix(words(0, c.before), words(0, c.newer), c.quiet ? 99 : 0), c.shared)
            << c.before << " / " << c.newer;
}

TEST(LiveText, WhatWasAgreedIsFoundInWhatIsHeard) {
    struct Case {
        const char *committed, *hypothesis;
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
        EXPECT_EQ(matched_prefix(words(0, c.committed), words(0, c.hypothesis)), c.words)
            << c.committed << " / " << c.hypothesis;
}

TEST(LiveText, ASentenceIsFinalWhenTwoHearingsHaveItAndQuietFollows) {
    LiveText text;
    text.update(hypothesis(words(0, "he was a very old."), 2.5, 0));
    EXPECT_EQ(shown(text), "[ he was a very old.]");
    text.update(hypothesis(words(0, "he was a very old man and he"), 4, 0));
    EXPECT_EQ(shown(text), " he was a very[ old man and he]");
    text.update(hypothesis(words(0, "he was a very old man and he smiled."), 5, 0.5));
    EXPECT_EQ(shown(text), " he was a very old man and he[ smiled.]");
    EXPECT_TRUE(text.take_finals().empty());
    EXPECT_TRUE(text.can_confirm());
    text.confirm(words(0, "he was a very old man and he smiled."));
    EXPECT_EQ(text_of(text.take_finals()), " he was a very old man and he smiled. /");
    EXPECT_FALSE(text.partial());
    EXPECT_FALSE(text.can_confirm());
    // The sound is kept until the sentence is certain to have ended.
    EXPECT_EQ(text.begin(), 0);
    text.update(hypothesis(words(0, "he was a very old man and he smiled."), 6, 1.2));
    EXPECT_DOUBLE_EQ(text.begin(), 5.4);  // the middle of the quiet
    EXPECT_EQ(text.take_dropped_text(), " he was a very old man and he smiled.");
    EXPECT_TRUE(text.take_finals().empty());  // nothing comes twice
}

TEST(LiveText, WordsThatAreAgreedStayThoughTheyAreHeardOtherwise) {
    LiveText text;
    text.update(hypothesis(words(0, "the week had"), 1.5, 0));
    text.update(hypothesis(words(0, "the week had changed and"), 2.5, 0));
    EXPECT_EQ(shown(text), " the week[ had changed and]");
    text.update(hypothesis(words(0, "the wind had changed and then"), 3, 0));
    EXPECT_EQ(shown(text), " the week had changed[ and then]");
}

TEST(LiveText, ASegmentEndsWhereTheModelOrAPauseSaysSo) {
    struct Case {
        const char *hypothesis, *finals, *rest;
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
        text.update(hypothesis(words(0, c.hypothesis), 4, 0));
        text.confirm(words(0, c.hypothesis));
        EXPECT_EQ(text_of(text.take_finals()), c.finals);
        EXPECT_EQ(shown(text), c.rest);
    }
}

TEST(LiveText, APauseEndsWhatHasNoMark) {
    for (const auto& [end, quiet, is_final] :
         {std::tuple{2.0, 0.5, false}, {2.5, 1.0, true}, {3.5, 0.0, false}}) {
        LiveText text;
        text.update(hypothesis(words(0, "one two three"), end, quiet));
        text.confirm(words(0, "one two three"));
        EXPECT_EQ(text_of(text.take_finals()), is_final ? " one two three /" : "") << end;
    }
    // Speech after the pause that has no words yet does not hide the pause.
    LiveText begun;
    begun.update({words(0, "one two."), 2.5, 1.0, 2.2});
    begun.confirm(words(0, "one two."));
    EXPECT_EQ(text_of(begun.take_finals()), " one two. /");
    EXPECT_DOUBLE_EQ(begun.begin(), 1.6);
    // If noise hides the quiet, two seconds without a word end the segment.
    LiveText text;
    text.update(hypothesis(words(0, "one two three four"), 2, 0));
    text.update(hypothesis(words(0, "one two three four five"), 3, 0));
    text.update(hypothesis(words(0, "one two three"), 4, 0));
    EXPECT_EQ(text_of(text.take_finals()), " one two three /");
}

TEST(LiveText, TheSoundIsCutInTheGapBehindTheLastFinalSegment) {
    LiveText text;
    text.update(hypothesis(words(0, "one two. _ three four."), 5, 0));
    text.confirm(words(0, "one two. _ three four."));
    EXPECT_DOUBLE_EQ(text.begin(), 1.5);  // of the gap from 1 to 2
    EXPECT_EQ(text.take_dropped_text(), " one two.");
    // The next hypothesis begins after the cut.
    text.update(hypothesis(words(2, "three four. five"), 6, 0));
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
        text.update(hypothesis(words(0, said), 0.5 * (i + 1), 0));
        begin = text.begin();
    }
    EXPECT_GT(begin, 15);
    EXPECT_LT(begin, 16.1);
    const std::vector<LiveSegment> finals = text.take_finals();
    ASSERT_EQ(finals.size(), 1u);
    EXPECT_EQ(finals[0].end, begin);
    EXPECT_EQ(finals[0].text, text.take_dropped_text());
}

TEST(LiveText, SilenceIsLetGoOfButItsLastSecond) {
    LiveText text;
    text.update(hypothesis({}, 0.5, 0.5));
    EXPECT_EQ(text.begin(), 0);
    text.update(hypothesis({}, 20, 20));
    EXPECT_EQ(text.begin(), 19);
    text.update(hypothesis(words(19, "a"), 21, 0));
    text.update(hypothesis({}, 22, 0));  // the word came once and not again: not silence yet
    EXPECT_EQ(text.begin(), 19);
    text.update(hypothesis({}, 23, 0));
    EXPECT_EQ(text.begin(), 22);
    EXPECT_FALSE(text.partial());
    EXPECT_TRUE(text.take_finals().empty());
}

TEST(LiveText, TheEndMakesAllOfItFinal) {
    LiveText text;
    text.update(hypothesis(words(0, "one two. three"), 2, 0));
    text.finish();
    EXPECT_EQ(text_of(text.take_finals()), " one two. / three /");
    EXPECT_EQ(text.begin(), 1.5);  // speech that began after the words may get text later
    EXPECT_FALSE(text.partial());
    text.finish();
    EXPECT_TRUE(text.take_finals().empty());
}

TEST(LiveText, TimesOfFinalsNeverRunBack) {
    LiveText text;
    text.update(hypothesis(words(0, "one two. three"), 2, 0));
    text.confirm(words(0, "one two. three"));
    text.update(hypothesis(words(0.2, "one two. three four."), 2.5, 1));
    // In this hypothesis the next segment begins before the last one ended.
    text.update(hypothesis(words(0.6, "three four. five six."), 3.5, 1));
    text.finish();
    double last_end = 0;
    std::string all;
    for (const LiveSegment& segment : text.take_finals()) {
        EXPECT_EQ(segment.start, segment.words.front().start);
        EXPECT_EQ(segment.end, segment.words.back().end);
        for (const Word& word : segment.words) {
            EXPECT_GE(word.start, last_end);
            EXPECT_GE(word.end, word.start);
            last_end = word.end;
            all += word.text;
        }
    }
    EXPECT_EQ(all, " one two. three four. five six.");
}

}  // namespace
}  // namespace hark::test
