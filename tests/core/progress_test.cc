#include "core/cli/progress.h"

#include <gtest/gtest.h>

namespace hark {
namespace {

ProgressReport report_of(ProgressReport::Unit unit, double done, double total) {
    ProgressReport report;
    report.unit = unit;
    report.done = done;
    report.total = total;
    return report;
}

TEST(Progress, ALineSaysHowFarHowFastAndHowLong) {
    ProgressReport talk = report_of(ProgressReport::Unit::seconds, 30, 120);
    talk.name = "talk.mp3";
    EXPECT_EQ(progress_line(talk, 0, 80), "talk.mp3: 25%");
    EXPECT_EQ(progress_line(talk, 4.51, 80), "talk.mp3: 25%, 4.5x, 0:20 left");
    talk.item = 2;
    EXPECT_EQ(progress_line(talk, 0, 80), "talk.mp3: 25%");
    talk.items = 7;
    talk.after = 36000;
    EXPECT_EQ(progress_line(talk, 10, 80), "talk.mp3: 25%, 2 of 7, 10x, 1:00:09 left");
    ProgressReport file = report_of(ProgressReport::Unit::bytes, 45e6, 290e6);
    file.name = "model.safetensors";
    EXPECT_EQ(progress_line(file, 9.8e6, 80),
              "model.safetensors: 45 of 290 MB, 9.8 MB/s, 0:25 left");
    ProgressReport training = report_of(ProgressReport::Unit::steps, 208, 2000);
    training.note = "loss 2.61";
    EXPECT_EQ(progress_line(training, 12.8, 80),
              "step 208 of 2000, 13 steps/s, loss 2.61, 2:20 left");
}

TEST(Progress, ALineFitsTheTerminal) {
    ProgressReport talk = report_of(ProgressReport::Unit::seconds, 30, 120);
    talk.name = "lectures/2024-11-05 an introduction.mp3";
    EXPECT_EQ(progress_line(talk, 4.5, 200),
              "lectures/2024-11-05 an introduction.mp3: 25%, 4.5x, 0:20 left");
    EXPECT_EQ(progress_line(talk, 4.5, 39), "lecture...ion.mp3: 25%, 4.5x, 0:20 left");
    EXPECT_EQ(progress_line(talk, 4.5, 10), "lec...p3: ");
    // Characters outside of ASCII may take two columns.
    talk.name = "我的家在海边我的家在海边.mp3";
    EXPECT_EQ(progress_line(talk, 0, 20), "我的家...边.mp3: 25%");
    talk.name = "a\nb\033[2J";
    EXPECT_EQ(progress_line(talk, 0, 80), "a\\nb\\x1b[2J: 25%");
}

TEST(Progress, JsonHasWhatIsKnown) {
    ProgressReport talk = report_of(ProgressReport::Unit::seconds, 30.0004, 120);
    talk.name = "talk\xff.mp3";
    talk.item = 2;
    EXPECT_EQ(progress_json(talk, 0),
              R"({"name":"talk�.mp3","unit":"seconds","done":30.0,"total":120.0,"item":2})");
    talk.items = 3;
    EXPECT_EQ(progress_json(talk, 10),
              R"({"name":"talk�.mp3","unit":"seconds","done":30.0,"total":120.0,"item":2,)"
              R"("items":3,"speed":10.0,"seconds_left":9.0})");
    ProgressReport download = report_of(ProgressReport::Unit::bytes, 5, 0);
    download.note = "x";
    EXPECT_EQ(progress_json(download, 2), R"({"unit":"bytes","done":5.0,"speed":2.0,"note":"x"})");
}

}  // namespace
}  // namespace hark
