// Spans, their file, and what is told of them.
#include "core/profile/profile.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/files/io.h"
#include "core/json/json.h"
#include "core/profile/measured_run.h"
#include "core/profile/metrics_text.h"
#include "core/profile/run_counts.h"
#include "support/error_of.h"
#include "support/process.h"

namespace hark {
namespace {

using Json = nlohmann::json;

void wait_us(int64_t us) {
    const int64_t end = monotonic_ns() + us * 1000;
    while (monotonic_ns() < end) continue;
}

StageTotal total_of(const std::string& stage) {
    for (const StageTotal& total : stage_totals())
        if (total.stage == stage) return total;
    return {};
}

// The events of a profile, whose lines each end with a comma.
std::vector<Json> events_of(const std::filesystem::path& path) {
    std::vector<Json> events;
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    EXPECT_EQ(line, "[");
    while (std::getline(in, line)) {
        EXPECT_TRUE(line.ends_with(",")) << line;
        events.push_back(Json::parse(line.substr(0, line.size() - 1)));
    }
    return events;
}

std::vector<Json> spans_of(const std::vector<Json>& events, const std::string& name) {
    std::vector<Json> spans;
    for (const Json& event : events)
        if (event["ph"] == "X" && event["name"] == name) spans.push_back(event);
    return spans;
}

struct ProfileTest : testing::Test {
    std::filesystem::path file() const { return folder.path() / "p.json"; }

    test::TemporaryDirectory folder;
    Console console{"tool"};
};

TEST_F(ProfileTest, NothingIsMeasuredUnlessAsked) {
    {
        MeasuredRun run("tool", console);
        EXPECT_FALSE(is_measured());
        const ProfileSpan span("unmeasured");
        span.follow("a.mp3", "0");
        add_memory("unmeasured", 7);
    }
    EXPECT_EQ(total_of("unmeasured").spans, 0);
    EXPECT_FALSE(run_counts().memory.contains("unmeasured"));
}

TEST_F(ProfileTest, ASpansOwnTimeIsWithoutInnerOnes) {
    console.profile = file();
    {
        MeasuredRun run("tool", console);
        const ProfileSpan outer("outer");
        wait_us(1000);
        for (int i = 0; i < 2; ++i) {
            const ProfileSpan inner("inner");
            const ProfileSpan innermost("innermost");
            wait_us(2000);
        }
    }
    EXPECT_EQ(total_of("inner").spans, 2);
    EXPECT_GE(total_of("innermost").seconds, 0.004);
    EXPECT_LT(total_of("inner").seconds, total_of("innermost").seconds);
    const std::vector<Json> outer = spans_of(events_of(file()), "tool.outer");
    ASSERT_EQ(outer.size(), 1u);
    EXPECT_GE(outer[0]["dur"], 5000.0);
    EXPECT_GE(outer[0]["args"]["own"], 1000.0);
    EXPECT_LE(outer[0]["args"]["own"], outer[0]["dur"].get<double>() - 4000);
}

TEST_F(ProfileTest, TheFileNamesProcessThreadsAndSteps) {
    console.profile = file();
    const int64_t begin = monotonic_ns();
    {
        MeasuredRun run("tool", console);
        const ProfileSpan span("mine");
        span.follow("a \"b\"\xff.mp3", "1");
        std::thread([] { const ProfileSpan span("mine"); }).join();
        run.finish();
    }
    const int64_t end = monotonic_ns();
    const std::vector<Json> events = events_of(file());
    EXPECT_EQ(events[0]["args"]["name"], "tool");
    EXPECT_EQ(events[0]["pid"], ::getpid());
    const std::vector<Json> mine = spans_of(events, "tool.mine");
    ASSERT_EQ(mine.size(), 2u);
    EXPECT_NE(mine[0]["tid"], mine[1]["tid"]);
    for (const Json& span : mine) {
        EXPECT_GE(span["ts"], static_cast<double>(begin) / 1e3 - 0.001);
        EXPECT_LE(span["ts"], static_cast<double>(end) / 1e3);
        const auto names = [&](const Json& event) {
            return event["name"] == "thread_name" && event["tid"] == span["tid"];
        };
        const auto thread = std::find_if(events.begin(), events.end(), names);
        ASSERT_NE(thread, events.end());
        EXPECT_EQ((*thread)["args"]["name"], "mine");
    }
    const auto step = std::find_if(events.begin(), events.end(),
                                   [](const Json& event) { return event["ph"] == "t"; });
    ASSERT_NE(step, events.end());
    EXPECT_EQ((*step)["args"]["source"], "a \"b\"\xef\xbf\xbd.mp3");
    EXPECT_EQ((*step)["args"]["channel"], "1");
}

TEST_F(ProfileTest, AnEventIsInTheFileWhileItsThreadRuns) {
    console.profile = file();
    MeasuredRun run("tool", console);
    const auto count = [&] { return spans_of(events_of(file()), "tool.many").size(); };
    for (int i = 0; i < 5000; ++i) const ProfileSpan span("many");
    EXPECT_GE(count(), 4096u);  // as many as a buffer has
    flush_profile();
    EXPECT_EQ(count(), 5000u);
}

TEST_F(ProfileTest, AFileThatCannotBeWrittenIsAnError) {
    console.profile = folder.path() / "none" / "p.json";
    EXPECT_NE(test::error_of([&] { MeasuredRun run("tool", console); }).find("cannot write"),
              std::string::npos);
    console.profile = "/dev/full";
    MeasuredRun run("tool", console);
    EXPECT_NE(test::error_of([&] { run.finish(); }).find("/dev/full: cannot write"),
              std::string::npos);
}

TEST_F(ProfileTest, OnlyItsOwnKindOfFileIsOverwritten) {
    const std::string path = folder.path() / "talk.wav";
    for (std::string Console::*flag : {&Console::profile, &Console::metrics}) {
        test::write_text(path, "RIFF");
        Console asked("test");
        asked.*flag = path;
        const std::string error = test::error_of([&] { MeasuredRun run("tool", asked); });
        EXPECT_NE(error.find("talk.wav: there is another kind of file"), std::string::npos)
            << error;
        EXPECT_EQ(test::read_text(path), "RIFF");
        test::write_text(path, "");
        MeasuredRun run("tool", asked);
        run.finish();
    }
    console.profile = "-";
    EXPECT_NE(test::error_of([&] { MeasuredRun run("tool", console); }).find("found -"),
              std::string::npos);
}

TEST_F(ProfileTest, PipesAreWaitedForAndFilesAreRead) {
    console.stats = true;
    console.silent = true;
    MeasuredRun run("tool", console);
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const StageTotal before = total_of("wait.in");
    std::thread writer([&] {
        wait_us(20'000);
        ByteWriter out(pipe[1], "pipe");
        out.write("text");
        out.flush();
        ::close(pipe[1]);
    });
    char text[8];
    EXPECT_EQ(ByteReader(pipe[0], "pipe").read(text, 8), 4u);
    writer.join();
    ::close(pipe[0]);
    EXPECT_EQ(total_of("wait.in").spans, before.spans + 1);
    EXPECT_GE(total_of("wait.in").seconds, before.seconds + 0.01);
    EXPECT_EQ(total_of("wait.out").spans, 1);

    test::write_text(folder.path() / "text", "text");
    const int fd = ::open((folder.path() / "text").c_str(), O_RDONLY);
    const int64_t reads = total_of("read").spans;
    EXPECT_EQ(ByteReader(fd, "text").read(text, 8), 4u);
    ::close(fd);
    EXPECT_EQ(total_of("read").spans, reads + 1);
}

TEST_F(ProfileTest, MetricsAreThoseOfTheRun) {
    console.metrics = folder.path() / "m.prom";
    {
        MeasuredRun run("tool", console);
        note_model("a\"b", "cpu");
        count_recording(false, 30);
        count_recording(true, 5);
        add_memory("weights", 100);
        add_memory("weights", -40);
        add_memory("weights", 10);
        run.finish();
    }
    const std::string text = test::read_text(console.metrics);
    const std::string labels = "tool=\"tool\",model=\"a\\\"b\",device=\"cpu\"";
    for (const std::string& line : {std::string("# TYPE hark_recordings_total counter"),
                                    "hark_audio_seconds_total{" + labels + "} 30",
                                    "hark_recordings_total{" + labels + ",state=\"done\"} 1",
                                    "hark_recordings_total{" + labels + ",state=\"failed\"} 1",
                                    "hark_memory_bytes{" + labels + ",owner=\"weights\"} 100"})
        EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << " in\n" << text;
    EXPECT_NE(text.find("\nhark_last_success_timestamp_seconds{"), std::string::npos);
}

TEST_F(ProfileTest, MetricsOfAFailedRunAreWhatIsKnown) {
    console.metrics = folder.path() / "m.prom";
    try {
        MeasuredRun run("tool", console);
        count_recording(true, 5);
        throw Error("wrong");
    } catch (const Error&) {
    }
    const std::string text = test::read_text(console.metrics);
    EXPECT_NE(text.find(",state=\"failed\"} "), std::string::npos) << text;
    EXPECT_NE(text.find("hark_run_duration_seconds{"), std::string::npos) << text;
    EXPECT_EQ(text.find("last_success"), std::string::npos) << text;
}

TEST(FlowId, TellsSourcesAndChannelsApart) {
    EXPECT_EQ(flow_id("a", "0"), flow_id("a", "0"));
    EXPECT_NE(flow_id("a", "0"), flow_id("a", "1"));
    EXPECT_NE(flow_id("a", "10"), flow_id("a1", "0"));
}

}  // namespace
}  // namespace hark
