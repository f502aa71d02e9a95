// A recording's windows and segments, with made-up results: no model.
#include "whisper/transcribe/transcription.h"

#include <gtest/gtest.h>

#include "whisper/model/config.h"
#include "whisper/support.h"

namespace hark::test {
namespace {

using namespace hark::whisper;

const Tokenizer& tokenizer() {
    static const Tokenizer kTokenizer(whisper_demo(), load_config(whisper_demo()).n_vocab);
    return kTokenizer;
}

MelRecording recording(double seconds) {
    return mel_of(std::vector<float>(static_cast<size_t>(seconds * 16000), 0.01f));
}

// A window's result: segments of (start, end, text), seconds from the window's start.
struct Said {
    double start, end;
    const char* text;
};

DecodingResult result_of(std::initializer_list<Said> segments) {
    const int32_t first = tokenizer().special().timestamp_begin;
    DecodingResult result;
    for (const Said& said : segments) {
        result.tokens.push_back(first + static_cast<int32_t>(said.start * 50));
        for (int32_t id : tokenizer().encode(said.text)) result.tokens.push_back(id);
        result.tokens.push_back(first + static_cast<int32_t>(said.end * 50));
    }
    return result;
}

TranscriptionPlan speech_plan(std::initializer_list<Region> regions, int64_t frames) {
    TranscriptionPlan plan;
    plan.speech.emplace(std::vector<Region>(regions), frames);
    return plan;
}

TEST(Transcription, GoesThroughWindowsOneAfterAnother) {
    Transcription t({"a"}, "", recording(50), {}, tokenizer());
    const auto first = t.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->size, 3000);
    EXPECT_FALSE(t.next());  // the second window waits for the first
    t.accept(*first, result_of({{0, 10, " one"}, {12, 29, " two"}}), "en", nullptr);
    EXPECT_EQ(t.take_segments().size(), 2u);
    const auto second = t.next();
    ASSERT_TRUE(second);
    EXPECT_EQ(second->seek, 3000);
    EXPECT_FALSE(t.done());
    t.accept(*second, result_of({{1, 5, " three"}}), "en", nullptr);
    EXPECT_TRUE(t.done());
    // Without a pair of timestamps the segment begins with its window, as in the reference.
    EXPECT_EQ(t.take_segments().at(0).start, 30);
    EXPECT_EQ(t.text(), " one two three");
}

TEST(Transcription, WindowsOnTheirOwnComeOutInOrder) {
    TranscriptionPlan plan;
    plan.windows = {{0, 2000}, {2000, 3500}, {3500, 5000}};
    Transcription t({"a"}, "", recording(50), std::move(plan), tokenizer());
    const auto a = t.next(), b = t.next(), c = t.next();
    ASSERT_TRUE(a && b && c);
    EXPECT_FALSE(t.next());
    t.accept(*c, result_of({{0, 14, " three"}}), "en", nullptr);
    EXPECT_TRUE(t.take_segments().empty());
    t.accept(*a, result_of({{0, 19, " one"}}), "en", nullptr);
    EXPECT_EQ(t.take_segments().at(0).text, " one");
    t.accept(*b, result_of({{0, 14, " two"}}), "en", nullptr);
    const std::vector<Segment> rest = t.take_segments();
    ASSERT_EQ(rest.size(), 2u);
    EXPECT_EQ(rest[0].start, 20);
    EXPECT_EQ(rest[1].start, 35);
    EXPECT_TRUE(t.done());
    EXPECT_EQ(t.text(), " one two three");
}

// 4 s and 6 s of speech, 10 s apart: one window of 10 s.
TEST(Transcription, TimesAreTheRecordingsOwn) {
    TranscriptionPlan plan = speech_plan({{160000, 224000}, {384000, 480000}}, 4000);
    MelRecording mel = recording(40).only(plan.speech->pieces());
    EXPECT_EQ(mel.content_frames(), 1000);
    Transcription t({"a"}, "", std::move(mel), std::move(plan), tokenizer());
    const auto window = t.next();
    ASSERT_TRUE(window);
    t.accept(*window, result_of({{0, 4, " one"}, {4, 10, " two"}}), "en", nullptr);
    const std::vector<Segment> segments = t.take_segments();
    ASSERT_EQ(segments.size(), 2u);
    EXPECT_EQ(segments[0].start, 10);
    EXPECT_EQ(segments[0].end, 14);
    EXPECT_EQ(segments[1].start, 24);
    EXPECT_EQ(segments[1].end, 30);
}

TEST(Transcription, SpeechThatNoSegmentCoversIsDecodedAgain) {
    TranscriptionPlan plan = speech_plan({{0, 320000}}, 2000);
    Transcription t({"a"}, "", recording(20), std::move(plan), tokenizer());
    const auto window = t.next();
    ASSERT_TRUE(window);
    t.accept(*window, result_of({{0, 5, " one"}, {12, 20, " three"}}), "en", nullptr);
    EXPECT_TRUE(t.take_segments().empty());  // what is missing belongs before " three"
    const auto again = t.next();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->seek, 500);
    EXPECT_EQ(again->size, 700);
    EXPECT_TRUE(again->prompt.empty());
    t.accept(*again, result_of({{0, 6, " two"}}), "en", nullptr);
    EXPECT_TRUE(t.done());  // once is enough, though a second is still not covered
    const std::vector<Segment> segments = t.take_segments();
    ASSERT_EQ(segments.size(), 3u);
    EXPECT_EQ(segments[1].text, " two");
    EXPECT_EQ(segments[1].start, 5);
    EXPECT_EQ(t.text(), " one two three");
}

TEST(Transcription, WhatIsRefusedOnItsOwnIsLeftOut) {
    TranscriptionPlan plan = speech_plan({{0, 320000}}, 2000);
    Transcription t({"a"}, "", recording(20), std::move(plan), tokenizer());
    t.accept(*t.next(), result_of({{0, 5, " one"}}), "en", nullptr);
    const auto again = t.next();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->seek, 500);
    DecodingResult unlikely = result_of({{0, 6, " two"}});
    unlikely.avg_logprob = -2;
    t.accept(*again, unlikely, "en", nullptr);
    EXPECT_TRUE(t.done());
    EXPECT_EQ(t.take_segments().size(), 1u);
}

// Two regions of 4 s and 6 s, and one segment over both: each is decoded on its own.
TEST(Transcription, WhatARegionSaysOnItsOwnIsTakenWhereItIsMore) {
    for (const char* second : {" two and three", ""}) {
        TranscriptionPlan plan = speech_plan({{160000, 224000}, {384000, 480000}}, 4000);
        MelRecording mel = recording(40).only(plan.speech->pieces());
        Transcription t({"a"}, "", std::move(mel), std::move(plan), tokenizer());
        t.accept(*t.next(), result_of({{0, 10, " one."}}), "en", nullptr);
        const auto a = t.next(), b = t.next();
        ASSERT_TRUE(a && b);
        EXPECT_EQ(a->seek, 0);
        EXPECT_EQ(a->size, 400);
        EXPECT_EQ(b->seek, 400);
        EXPECT_EQ(b->size, 600);
        t.accept(*b, result_of({{0, 6, second}}), "en", nullptr);
        EXPECT_TRUE(t.take_segments().empty());
        t.accept(*a, result_of({{0, 4, " one"}}), "en", nullptr);
        EXPECT_TRUE(t.done());
        const std::vector<Segment> segments = t.take_segments();
        if (*second) {
            ASSERT_EQ(segments.size(), 2u);
            EXPECT_EQ(t.text(), " one two and three");
            EXPECT_EQ(segments[1].start, 24);
        } else {
            ASSERT_EQ(segments.size(), 1u);
            EXPECT_EQ(t.text(), " one.");
            EXPECT_EQ(segments[0].end, 30);
        }
    }
}

// Without a prompt the same window would come to the same.
TEST(Transcription, AWindowWithoutTextIsNotDecodedTwice) {
    TranscriptionPlan plan = speech_plan({{0, 160000}}, 1000);
    Transcription t({"a"}, "", recording(10), std::move(plan), tokenizer());
    t.accept(*t.next(), DecodingResult{}, "en", nullptr);
    EXPECT_FALSE(t.next());
    EXPECT_TRUE(t.done());
}

TEST(Transcription, LoopsAreKeptOutOfTheNextPrompt) {
    for (const int64_t most : {0, 3}) {
        TranscriptionPlan plan;
        plan.loop.thresholds.max_repeats = most;
        Transcription t({"a"}, "", recording(150), std::move(plan), tokenizer());
        for (int i = 0; i < 4; ++i)
            t.accept(*t.next(), result_of({{0, 29, " Thank you."}}), "en", nullptr);
        EXPECT_EQ(t.next()->prompt.empty(), most == 3) << most;
    }
}

TEST(Rejection, OfAWindowThatLoops) {
    DecodingResult looping;
    looping.repeats = 5;
    EXPECT_EQ(rejection(looping, {}), Rejection::none);
    EXPECT_EQ(rejection(looping, {.max_repeats = 5}), Rejection::none);
    EXPECT_EQ(rejection(looping, {.max_repeats = 4}), Rejection::repeats);
}

}  // namespace
}  // namespace hark::test
