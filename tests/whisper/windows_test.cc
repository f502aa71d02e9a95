// Which frames are decoded, as tables.
#include "whisper/transcribe/windows.h"

#include <gtest/gtest.h>

#include "whisper/output/strings.h"

namespace hark::whisper {
namespace {

using Ranges = std::vector<FrameRange>;

Segment windows_segment(double start, double end, const std::string& text = "a") {
    Segment s;
    s.start = start;
    s.end = end;
    s.text = text;
    return s;
}

TEST(IndependentWindows, EndAtTheLastPauseTheyReach) {
    const std::vector<int64_t> pauses = {500, 2900, 3100, 5800};
    EXPECT_EQ(independent_windows(Ranges{{0, 7000}}, pauses),
              (Ranges{{0, 2900}, {2900, 5800}, {5800, 7000}}));
}

TEST(IndependentWindows, AreCutAfter30SecondsWithoutAPause) {
    EXPECT_EQ(independent_windows(Ranges{{0, 7000}}, {}),
              (Ranges{{0, 3000}, {3000, 6000}, {6000, 7000}}));
    const std::vector<int64_t> early = {0, 100};
    EXPECT_EQ(independent_windows(Ranges{{200, 4000}}, early), (Ranges{{200, 3200}, {3200, 4000}}));
}

TEST(IndependentWindows, KeepARangeThatFitsWhole) {
    const std::vector<int64_t> pauses = {1000, 2000, 3000};
    EXPECT_EQ(independent_windows(Ranges{{0, 3000}, {3500, 3600}}, pauses),
              (Ranges{{0, 3000}, {3500, 3600}}));
    EXPECT_TRUE(independent_windows(Ranges{{50, 50}}, pauses).empty());
}

TEST(Pauses, LieHalfwayBetweenRegions) {
    const std::vector<Region> speech = {{0, 16000}, {32000, 48000}, {48000, 64000}};
    EXPECT_EQ(pauses_between(speech), (std::vector<int64_t>{150, 300}));
    EXPECT_TRUE(pauses_between(std::vector<Region>{{0, 1}}).empty());
}

TEST(Clipped, KeepsWhatLiesInTheClips) {
    const std::vector<Region> speech = {{0, 32000}, {48000, 80000}};
    EXPECT_EQ(clipped(speech, {}), speech);
    EXPECT_EQ(clipped(speech, std::vector<double>{1, 4}),
              (std::vector<Region>{{16000, 32000}, {48000, 64000}}));
    EXPECT_EQ(clipped(speech, std::vector<double>{4.5}), (std::vector<Region>{{72000, 80000}}));
    EXPECT_TRUE(clipped(speech, std::vector<double>{2.5, 2.9}).empty());
    // Out of order, overlapping, and one that ends before it begins.
    EXPECT_EQ(clipped(speech, std::vector<double>{4.5, 5, 1.75, 2, 1, 1.9, 3, 1}),
              (std::vector<Region>{{16000, 30400}, {30400, 32000}, {72000, 80000}}));
}

TEST(Uncovered, IsASecondOrMoreWithoutASegment) {
    const std::vector<Segment> segments = {windows_segment(1.5, 4), windows_segment(4.5, 6),
                                           windows_segment(7.5, 8, "")};
    EXPECT_EQ(uncovered({0, 1000}, segments), (Ranges{{0, 150}, {600, 1000}}));
    EXPECT_EQ(uncovered({100, 690}, segments), Ranges{});
    EXPECT_EQ(uncovered({0, 1000}, {}), (Ranges{{0, 1000}}));
    const std::vector<Segment> nested = {windows_segment(0, 9), windows_segment(2, 3)};
    EXPECT_EQ(uncovered({0, 1000}, nested), (Ranges{{900, 1000}}));
}

TEST(Repeats, CountsRunsBackToBack) {
    const auto tokens = [](std::initializer_list<int32_t> ids) {
        return std::vector<int32_t>(ids);
    };
    EXPECT_EQ(repeats(tokens({})), 1);
    EXPECT_EQ(repeats(tokens({1, 2, 3, 4, 5, 6, 7, 8, 9})), 1);
    EXPECT_EQ(repeats(tokens({1, 2, 3, 4, 1, 2, 3, 4})), 2);
    EXPECT_EQ(repeats(tokens({9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 8})), 3);
    EXPECT_EQ(repeats(tokens({5, 5, 5, 5, 5, 5, 5})), 1);  // one short of eight tokens
    EXPECT_EQ(repeats(tokens({5, 5, 5, 5, 5, 5, 5, 5})), 8);
    EXPECT_EQ(repeats(tokens({1, 2, 3, 4, 7, 1, 2, 3, 4})), 1);
}

}  // namespace
}  // namespace hark::whisper
