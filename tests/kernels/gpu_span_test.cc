// Stages on a GPU's own time, and NVTX's ranges, by a fake libhark-cuda.so (fake_cuda/).
#include "kernels/runtime/gpu_span.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/json/json.h"
#include "kernels/runtime/cuda_library.h"
#include "support/process.h"

namespace hark::test {
namespace {

using Json = nlohmann::json;

// Complete events of a profile.
std::vector<Json> spans_of(const std::string& profile, const std::string& name) {
    std::vector<Json> spans;
    std::istringstream lines(profile);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
        const Json event = Json::parse(line.substr(0, line.size() - 1));
        if (event["ph"] == "X" && event["name"] == name) spans.push_back(event);
    }
    return spans;
}

TEST(GpuSpans, AreEventsOnTheCpusClock) {
    const TemporaryDirectory folder;
    const std::string file = folder.path() / "p.json";
    const ProcessResult run =
        run_shell("'" + (build_dir() / "tests/fake_cuda/bin/gpu_spans").string() + "' " + file);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    // One wait per stream. From the first GpuSpan on the library is told of the other spans.
    long long before = 0, after = 0;
    int read = 0;
    ASSERT_EQ(std::sscanf(run.out.c_str(), "wait\nbase %lld %lld\n%n", &before, &after, &read), 2)
        << run.out;
    EXPECT_EQ(run.out.substr(static_cast<size_t>(read)), "wait\npush step\npop\n");

    const std::string profile = read_text(file);
    EXPECT_EQ(profile.find("unmeasured"), std::string::npos);
    EXPECT_EQ(profile.find("gpu.cpu"), std::string::npos);
    const std::vector<Json> encode = spans_of(profile, "tool.gpu.encode"),
                            prefill = spans_of(profile, "tool.gpu.prefill"),
                            step = spans_of(profile, "tool.gpu.step");
    ASSERT_EQ(encode.size(), 1u);
    ASSERT_EQ(prefill.size(), 1u);  // reached after the last question before the end
    ASSERT_EQ(step.size(), 200u);
    // The base was at the GPU's 10 ms, the span from 20 to 30.
    EXPECT_GE(encode[0]["ts"], static_cast<double>(before) / 1e3 + 10'000 - 0.001);
    EXPECT_LE(encode[0]["ts"], static_cast<double>(after) / 1e3 + 10'000);
    EXPECT_EQ(encode[0]["dur"], 10'000.0);
    EXPECT_EQ(prefill[0]["dur"], 10'000.0);
    EXPECT_NE(prefill[0]["tid"].get<int>() / 100, encode[0]["tid"].get<int>() / 100);
    // The other stream took three events. Bases that follow, a second later each, move no span.
    const double first = encode[0]["ts"].get<double>() + 10'000 + 40'000;
    for (size_t i = 0; i < step.size(); ++i) {
        EXPECT_NEAR(step[i]["ts"], first + 20'000.0 * static_cast<double>(i), 0.01) << i;
        EXPECT_EQ(step[i]["dur"], 10'000.0) << i;
    }
    EXPECT_EQ(step[0]["tid"].get<int>() / 100, encode[0]["tid"].get<int>() / 100);
}

// A profiler that NVTX loads, such as nsys, is told of the ranges.
TEST(GpuSpans, RangesReachAProfiler) {
    const std::string recorder = build_dir() / "tests/fake_cuda/lib/libnvtx_recorder.so";
    if (!cuda_library_is_there() || !std::filesystem::exists(recorder))
        GTEST_SKIP() << "the CUDA library is not built";
    EXPECT_EXIT(
        {
            ::dup2(STDERR_FILENO, STDOUT_FILENO);  // what is compared
            ::setenv("NVTX_INJECTION64_PATH", recorder.c_str(), 1);
            const SpanRanges& ranges =
                reinterpret_cast<const CudaTiming* (*)()>(cuda_symbol("hark_cuda_timing"))()
                    ->ranges;
            ranges.push("encode");
            ranges.push("step");
            ranges.pop();
            ranges.pop();
            std::_Exit(0);
        },
        testing::ExitedWithCode(0), "push encode\npush step\npop\npop\n");
}

}  // namespace
}  // namespace hark::test
