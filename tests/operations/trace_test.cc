// Profiles merged and summed up.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "operations/trace/gpu_watch.h"
#include "operations/trace/merge.h"
#include "operations/trace/summary.h"
#include "support/error_of.h"
#include "support/process.h"

namespace hark::trace {
namespace {

using Json = nlohmann::json;

std::string process_lines(int pid, const std::string& tool, const std::string& boot = "b") {
    return concat(R"({"name":"process_name","ph":"M","pid":)", pid, R"(,"tid":0,"args":{"name":")",
                  tool, "\"}},\n", R"({"name":"clock","ph":"M","pid":)", pid,
                  R"(,"tid":0,"args":{"boot":")", boot, "\"}},\n");
}

std::string span_line(int pid, int tid, const std::string& name, int ts, int duration, int own) {
    return concat(R"({"name":")", name, R"(","cat":"stage","ph":"X","ts":)", ts, R"(,"dur":)",
                  duration, R"(,"pid":)", pid, R"(,"tid":)", tid, R"(,"args":{"own":)", own,
                  "}},\n");
}

std::string step_line(int pid, int tid, const std::string& id, int ts) {
    return concat(R"({"name":"recording","cat":"recording","ph":"t","bp":"e","id":")", id,
                  R"(","ts":)", ts, R"(,"pid":)", pid, R"(,"tid":)", tid, R"(,"args":{}},)", "\n");
}

struct TraceTest : testing::Test {
    std::string write(const std::string& name, const std::string& lines) const {
        test::write_text(folder.path() / name, "[\n" + lines);
        return folder.path() / name;
    }
    // decode for 1 s, mel for 4 of 10 s.
    std::vector<std::string> pipe() const {
        return {write("d", process_lines(7, "audio-decode") +
                               span_line(7, 101, "audio-decode.decode", 1000, 1'000'000, 900'000) +
                               step_line(7, 101, "0x1", 2000) + step_line(7, 101, "0x2", 3000)),
                write("m", process_lines(8, "mel") +
                               span_line(8, 102, "mel.wait.in", 0, 6'000'000, 6'000'000) +
                               span_line(8, 101, "mel.mel", 6'000'000, 4'000'000, 4'000'000) +
                               step_line(8, 101, "0x1", 9'000'000) +
                               step_line(8, 101, "0x1", 7'000'000))};
    }

    test::TemporaryDirectory folder;
    Console console{"test"};
};

TEST_F(TraceTest, MergeJoinsStepsToFlows) {
    std::string text;
    merge_traces(TraceFiles(pipe()), console, [&](const std::string& more) { text += more; });
    const Json events = Json::parse(text);
    std::map<std::string, std::string> phases;  // by time
    std::map<int, int> order;
    for (const Json& event : events) {
        if (event["name"] == "recording") phases[event["ts"].dump()] = event["ph"];
        if (event["name"] == "process_sort_index")
            order[event["pid"]] = event["args"]["sort_index"];
    }
    const std::map<std::string, std::string> expected = {
        {"2000", "s"}, {"7000000", "t"}, {"9000000", "f"}};
    EXPECT_EQ(phases, expected);  // 0x2 is in one tool alone
    EXPECT_LT(order[7], order[8]);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), std::ssize(events) + 2);
    // A merged trace is one of the files that can be merged.
    std::string again;
    merge_traces(TraceFiles({write("t", text.substr(2))}), console,
                 [&](const std::string& more) { again += more; });
    EXPECT_EQ(Json::parse(again), events);
}

TEST_F(TraceTest, TheBusiestToolBinds) {
    const TraceSums sums = sum_up(TraceFiles(pipe()), console);
    const std::vector<ToolSum>& tools = sums.tools;
    ASSERT_EQ(tools.size(), 2u);
    EXPECT_EQ(tools[0].tool, "audio-decode");
    EXPECT_DOUBLE_EQ(tools[0].stages[0].seconds, 0.9);
    EXPECT_DOUBLE_EQ(tools[1].seconds, 10);
    EXPECT_DOUBLE_EQ(tools[1].busy, 4);
    // audio-decode was busy for 0.9 of 1 s.
    EXPECT_EQ(binding_tool(tools)->tool, tools[1].tool);
    const std::string text = summary_text(sums);
    EXPECT_NE(text.find("bound by " + tools[1].tool + ": busy for 40.0% of its run, of that "),
              std::string::npos)
        << text;
}

TEST_F(TraceTest, GpusAreSummedUp) {
    const doctor::GpuSample idle{.index = 1,
                                 .busy = 0,
                                 .power = 100'000,
                                 .limits = doctor::kIdle,
                                 .energy = 5'000,
                                 .used_memory = 1'000'000'000};
    const doctor::GpuSample hot{.index = 1,
                                .busy = 100,
                                .power = 500'000,
                                .limits = doctor::kHardwareHeat,
                                .energy = 105'000,
                                .used_memory = 2'000'000'000};
    const std::string path = write("g", gpu_line(idle, 0) + gpu_line(hot, 200'000'000));
    EXPECT_EQ(
        summary_text(sum_up(TraceFiles({path}), console)),
        "gpu 1: busy 50.0%, throttled 50.0% (heat), 300 W, at most 500 W and 2.0 GB, 100 J\n");
}

TEST_F(TraceTest, AHalfWrittenLineEndsItsFile) {
    const std::string half = span_line(7, 101, "mel.mel", 1000, 10, 10);
    const std::string path =
        write("p", process_lines(7, "mel") + half + half.substr(0, half.size() / 2));
    testing::internal::CaptureStderr();
    EXPECT_EQ(sum_up(TraceFiles({path}), console).tools[0].stages[0].spans, 1);
    EXPECT_NE(testing::internal::GetCapturedStderr().find(path + ": line 5: the last event is "
                                                                 "half-written"),
              std::string::npos);
}

TEST_F(TraceTest, WhatIsNoProfileIsRefused) {
    const auto error = [&](const std::vector<std::string>& paths) {
        return test::error_of([&] { TraceFiles files(paths); });
    };
    const std::string mel = write("a", process_lines(7, "mel"));
    EXPECT_NE(error({mel, write("b", process_lines(8, "mel", "c"))}).find("clocks differ"),
              std::string::npos);
    for (const std::string line :
         {"nonsense\n[\n", "1,\n", R"({"name":"a","ph":"M","pid":1e300,"tid":1},)",
          R"({"name":"a"},)", R"({"name":"a","ph":"X","pid":1,"tid":1},)"})
        EXPECT_NE(error({write("c", line)}).find("c: line "), std::string::npos) << line;
    for (const std::string line : {"[1],", R"({"text":"a transcript"})"})
        EXPECT_TRUE(
            error({write("c", line)})
                .ends_with("c: line 2: no event of a trace; expected what --profile writes"))
            << line;
    EXPECT_NE(error({folder.path() / "none"}).find("none"), std::string::npos);
}

}  // namespace
}  // namespace hark::trace
