// What the sanitizers' build cannot show: bounds of memory, and many damaged recordings.
#include <gtest/gtest.h>

#include <chrono>

#include "core/json/json.h"
#include "support/audio.h"
#include "support/expect.h"
#include "support/process.h"
#include "tools/gpt_generate.h"

using namespace hark;
using namespace hark::test;

// A few of what tests/reliability/truncation.py makes by the thousand.
TEST(Resources, DamagedRecordingsAreNamedAndWholeOnesAreNot) {
    if (!has_command("ffmpeg") || !has_command("python3"))
        GTEST_SKIP() << "needs ffmpeg and python3";
    const ProcessResult result =
        run_shell("python3 '" + (source_dir() / "tests/reliability/truncation.py").string() +
                  "' --count 29 --tool \"$(command -v audio-decode)\"");
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    expect_contains(result.out, "0 silent losses in 29 damaged recordings");
}

TEST(Resources, ThreeHoursOfMp3TakeConstantMemory) {
    const TemporaryDirectory directory;
    const std::string story = samples_dir() / "story.mp3";
    const double seconds =
        static_cast<double>(join(read_chunks(run_tool("audio-decode", {story}).out, "audio"))
                                .at("1")
                                .values.size()) /
        kSampleRate;
    // The tool's peak memory in KiB, seen once that many bytes of its output have been read and the
    // pipe still holds it up.
    const auto peak_kib = [&](int copies, int64_t bytes) {
        const ProcessResult result = run_shell(
            "cd '" + directory.path().string() +
            "'; rm -f out long.mp3; mkfifo out;"
            "for i in $(seq " +
            std::to_string(copies) + "); do cat '" + story +
            "'; done > long.mp3; audio-decode long.mp3 > out & tool=$!;"
            "{ head -c " +
            std::to_string(bytes) +
            " > /dev/null;"
            "  sed -n 's/VmHWM://p' /proc/$tool/status; cat > /dev/null; } < out; wait $tool");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return std::stol(result.out);
    };
    const int64_t three_hours = int64_t{3} * 3600 * kSampleRate * 4;
    const auto began = std::chrono::steady_clock::now();
    const long hours = peak_kib(static_cast<int>(3 * 3600 / seconds) + 2, three_hours);
    const auto took = std::chrono::steady_clock::now() - began;
    const long minutes =
        peak_kib(12, 4 * 30 * kSampleRate * 4);  // enough to fill what is read ahead
    EXPECT_LT(hours, minutes + 16 * 1024);       // of the 675 MiB that are decoded
    RecordProperty("hours_kib", static_cast<int>(hours));
    RecordProperty("minutes_kib", static_cast<int>(minutes));
    RecordProperty("seconds", std::to_string(std::chrono::duration<double>(took).count()));
}

TEST(Resources, OfHarkRedactDoNotGrowWithTheInput) {
    const auto line = [](const std::string& text) {
        return nlohmann::json{{"source", "a"}, {"text", text}}.dump();
    };
    const std::string script = "for ((i = 0; i < 60000; ++i)); do echo '" +
                               line(" Call 415-555-0123, or not.") +
                               "'; done | (ulimit -v 300000; hark-redact -q) | tail -n 1";
    EXPECT_EQ(run_shell(script).out, line(" Call [PHONE], or not.") + "\n");
}

TEST(Resources, AnEndlessLineOfPromptsIsRefused) {
    const ProcessResult result = run_shell("ulimit -v 4000000; gpt-generate --model '" + kGptDemo +
                                           "' --threads 1 --input-format jsonl < /dev/zero");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    expect_contains(result.err, "stdin: line 1: the line is longer than 64 MiB");
}

// 64 MiB and one byte more than a line may have.
TEST(Resources, ALineOfDocumentsHasABound) {
    const ProcessResult endless =
        run_shell("tr '\\0' x < /dev/zero | (ulimit -v 2000000; gpt-tokenize --model '" + kGptDemo +
                  "' --threads 1 --input-format jsonl) | cat; exit ${PIPESTATUS[1]}");
    expect_fails(endless, 1, "stdin: line 1: the line is longer than 64 MiB");
    const ProcessResult second = run_shell(
        "{ echo '{\"text\": \"one\"}'; head -c 67108865 /dev/zero | tr '\\0' x; } | gpt-tokenize "
        "--model '" +
        kGptDemo + "' --input-format jsonl --format ids");
    expect_fails(second, 1, "stdin: line 2: the line is longer than 64 MiB");
    EXPECT_EQ(second.out,
              run_tool("gpt-tokenize", {"--model", kGptDemo, "--format", "ids"}, "one").out);
}
