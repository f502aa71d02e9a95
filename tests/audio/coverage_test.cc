#include "audio/coverage.h"

#include <gtest/gtest.h>

namespace hark {
namespace {

const double kNone = std::numeric_limits<double>::quiet_NaN();

// 20 ms frames from `begin` to `end`, with timestamps rounded to 1 ms as Matroska's.
void add_frames(Coverage& coverage, double begin, double end) {
    for (double at = begin; at < end - 0.001; at += 0.02)
        coverage.add_frame(std::round(at * 1000) / 1000, 0.02);
}

TEST(Coverage, WholeRecordingsLackNothing) {
    Coverage timed, untimed;
    add_frames(timed, 0, 10);
    for (int i = 0; i < 500; ++i) untimed.add_frame(kNone, 0.02);
    EXPECT_EQ(timed.loss(10, timed.end()).text, "");
    EXPECT_EQ(untimed.loss(10, untimed.end()).text, "");
    EXPECT_EQ(timed.loss(0, timed.end()).text, "");
    EXPECT_EQ(timed.loss(10.09, timed.end()).text, "");
    EXPECT_EQ(Coverage().loss(0, 0).text, "");
}

TEST(Coverage, NamesAnEndThatIsMissing) {
    Coverage coverage;
    add_frames(coverage, 0, 13.3);
    EXPECT_EQ(coverage.loss(26.7, coverage.end()).text, "ends at 13.3 of 26.7 s");
    EXPECT_EQ(Coverage().loss(1199, 0).text, "ends at 0.0 of 1199.0 s");
    EXPECT_TRUE(coverage.loss(26.7, coverage.end()).is_end);
    EXPECT_FALSE(coverage.loss(13.3, coverage.end()).is_end);
}

TEST(Coverage, PaddingAtTheEndIsNotMissing) {
    Coverage coverage;
    add_frames(coverage, 0, 10);
    coverage.set_padding(0.14);
    EXPECT_EQ(coverage.loss(10.14, coverage.end()).text, "");
    coverage.set_padding(0);
    EXPECT_NE(coverage.loss(10.14, coverage.end()).text, "");
}

TEST(Coverage, NamesGapsWithTheirPlaces) {
    Coverage one, two;
    add_frames(one, 1.4, 13.4);  // timestamps of MPEG-TS begin at 1.4 s
    add_frames(one, 16.6, 20);
    EXPECT_EQ(one.loss(0, one.end()).text, "3.2 s are missing at 12.0 s");
    add_frames(two, 0, 2);
    add_frames(two, 3, 4);
    add_frames(two, 4.5, 6);
    EXPECT_EQ(two.loss(8, two.end()).text,
              "ends at 6.0 of 8.0 s; 1.5 s are missing in 2 places, first at 2.0 s");
    EXPECT_FALSE(two.loss(8, two.end()).is_end);
    EXPECT_FALSE(one.loss(0, one.end()).is_end);
}

TEST(Coverage, TheFirstFramesMayBeMissing) {
    Coverage late, cut, damaged, primed;
    add_frames(late, 5, 10);
    EXPECT_EQ(late.loss(10, late.end()).text, "");
    primed.add_frame(0, 0.02);  // as ffmpeg writes fragments of sound and pictures
    add_frames(primed, 0.2, 10);
    EXPECT_EQ(primed.loss(10, primed.end()).text, "");
    cut.begin_at_zero();
    add_frames(cut, 5, 10);
    EXPECT_EQ(cut.loss(10, cut.end()).text, "5.0 s are missing at 0.0 s");
    damaged.add_damage(1, 0.02);
    add_frames(damaged, 5, 10);
    EXPECT_EQ(damaged.loss(10, damaged.end()).text, "4.0 s are missing at 0.0 s");
}

// Steps of a packet's length add up; those of rounding, and those that are taken back, do not.
TEST(Coverage, ManyShortGapsAreALoss) {
    Coverage lossy, jittery, drifting, damaged;
    for (int i = 0; i < 100; ++i) {
        lossy.add_frame(i * 0.03, 0.02);
        jittery.add_frame(i * 0.02 + (i % 2) * 0.03, 0.02);
        drifting.add_frame(i * 0.0203, 0.02);
    }
    EXPECT_EQ(lossy.loss(3, lossy.end()).text, "1.0 s are missing");
    EXPECT_EQ(jittery.loss(0, 0).text, "");
    EXPECT_EQ(drifting.loss(0, 0).text, "");
    for (int i = 0; i < 100; ++i) {
        damaged.add_frame(i * 0.023, 0.02);
        damaged.add_damage(i * 0.023 + 0.02, 0.003);
    }
    EXPECT_EQ(damaged.loss(0, 0).text, "0.3 s are missing in 99 places, first at 0.0 s");
}

// Each file of several MP3 files in one begins with a packet that holds no sound.
TEST(Coverage, CountedTimestampsTellNoGap) {
    Coverage several, declared;
    several.set_counted();
    declared.set_counted();
    for (int i = 0; i < 100; ++i) {
        several.add_damage(i * 0.046, 0.026);
        several.add_frame(i * 0.046 + 0.026, 0.02);
        declared.add_damage(i * 0.046, 0.026);
        declared.add_frame(i * 0.046 + 0.026, 0.02);
    }
    EXPECT_EQ(several.loss(0, several.end()).text, "");
    EXPECT_EQ(several.loss(1, several.end()).text, "");
    EXPECT_EQ(declared.loss(4.6, declared.end()).text, "ends at 2.0 of 4.6 s; damaged at 0.0 s");
}

TEST(Coverage, TheLastPacketsMayBeDamaged) {
    Coverage coverage;
    add_frames(coverage, 0, 2);
    coverage.add_damage(2, 0.09);
    EXPECT_EQ(coverage.loss(0, coverage.end()).text, "");
    coverage.add_damage(2.09, 0.09);
    EXPECT_EQ(coverage.loss(0, coverage.end()).text, "0.2 s are missing");
    EXPECT_EQ(coverage.loss(2.18, coverage.end()).text, "ends at 2.0 of 2.2 s");
}

TEST(Coverage, ADamagedTimestampDoesNotCountYears) {
    Coverage coverage;
    add_frames(coverage, 0, 6.6);
    coverage.add_frame(55575, 0.02);
    EXPECT_EQ(coverage.loss(13.4, coverage.end()).text, "6.8 s are missing at 6.6 s");
}

}  // namespace
}  // namespace hark
