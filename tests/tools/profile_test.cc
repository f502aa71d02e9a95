// --profile of the tools of a pipe: one clock, nested spans, recordings followed from decoding to
// text; and the same through the commands of hark.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "core/json/json.h"
#include "core/profile/profile.h"
#include "tools/hark_serve.h"
#include "tools/pipelines.h"

namespace hark::test {
namespace {

using Json = nlohmann::json;

struct Span {
    std::string name;
    double begin, end;
};

// A trace of several tools.
struct Trace {
    explicit Trace(const std::string& text) : events(Json::parse(text)) {
        for (const Json& event : events) {
            const int pid = event["pid"], tid = event["tid"];
            if (event["ph"] == "M" && event["name"] == "process_name")
                tools[pid] = event["args"]["name"];
            if (event["ph"] == "X")
                spans[{pid, tid}].push_back(
                    {event["name"], event["ts"],
                     event["ts"].get<double>() + event["dur"].get<double>()});
        }
    }
    std::set<std::string> names() const {
        std::set<std::string> all;
        for (const auto& [thread, of] : spans)
            for (const Span& span : of) all.insert(span.name);
        return all;
    }

    Json events;
    std::map<int, std::string> tools;
    std::map<std::pair<int, int>, std::vector<Span>> spans;
};

// Spans of a thread's stage are one after another or one within another.
void expect_nesting(const Trace& trace) {
    for (const auto& [thread, unsorted] : trace.spans) {
        std::vector<Span> spans = unsorted, open;
        std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
            return a.begin < b.begin || (a.begin == b.begin && a.end > b.end);
        });
        for (const Span& span : spans) {
            EXPECT_LE(span.begin, span.end) << span.name;
            while (!open.empty() && open.back().end <= span.begin + 0.002) open.pop_back();
            const double end = open.empty() ? span.end : open.back().end;
            EXPECT_LE(span.end, end + 0.002) << span.name;
            open.push_back(span);
        }
    }
}

// Each step is within a span of its thread; `tools` have one or more, the first before the last.
void expect_flow(const Trace& trace, const std::string& source, const std::string& first_tool,
                 const std::string& last_tool) {
    std::vector<Json> steps;
    for (const Json& event : trace.events)
        if (event["name"] == "recording" && event["args"]["source"] == source)
            steps.push_back(event);
    ASSERT_GE(steps.size(), 2u) << source;
    std::sort(steps.begin(), steps.end(),
              [](const Json& a, const Json& b) { return a["ts"] < b["ts"]; });
    EXPECT_EQ(steps.front()["ph"], "s");
    EXPECT_EQ(steps.back()["ph"], "f");
    EXPECT_EQ(trace.tools.at(steps.front()["pid"]), first_tool);
    EXPECT_EQ(trace.tools.at(steps.back()["pid"]), last_tool);
    for (const Json& step : steps) {
        EXPECT_EQ(step["id"], steps.front()["id"]);
        const bool is_end = step == steps.front() || step == steps.back();
        EXPECT_EQ(step["ph"] == "t", !is_end) << step;
        const double at = step["ts"];
        const auto& spans = trace.spans.at({step["pid"], step["tid"]});
        EXPECT_TRUE(std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
            return span.begin <= at && at <= span.end;
        })) << step;
    }
}

void expect_names(const Trace& trace, const std::vector<std::string>& names) {
    const std::set<std::string> all = trace.names();
    for (const std::string& name : names) EXPECT_TRUE(all.contains(name)) << name;
}

TEST(Profile, OfAPipeIsOnOneClock) {
    const TemporaryDirectory folder;
    const std::string p = folder.path().string() + "/", samples = samples_dir().string() + "/";
    const int64_t begin = monotonic_ns();
    const ProcessResult run =
        run_shell("set -o pipefail; audio-decode " + samples + "story.mp3 " + samples +
                  "key.wav --profile " + p + "d | mel --profile " + p +
                  "m | whisper-transcribe --model demo --threads 1 --profile " + p +
                  "w | gpt-generate --model demo --threads 1 --max-tokens 5 --profile " + p + "g");
    const int64_t end = monotonic_ns();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    const ProcessResult merged =
        run_tool("hark-trace", {"merge", p + "d", p + "m", p + "w", p + "g"});
    ASSERT_EQ(merged.exit_code, 0) << merged.err;
    const Trace trace(merged.out);
    std::set<std::string> tools;
    for (const auto& [pid, tool] : trace.tools) tools.insert(tool);
    const std::set<std::string> expected = {"audio-decode", "mel", "whisper-transcribe",
                                            "gpt-generate"};
    EXPECT_EQ(tools, expected);
    EXPECT_EQ(trace.tools.size(), 4u);
    expect_names(
        trace,
        {"audio-decode.read", "audio-decode.decode", "audio-decode.write", "audio-decode.wait.out",
         "mel.wait.in", "mel.read", "mel.mel", "mel.wait.out", "whisper-transcribe.load",
         "whisper-transcribe.wait.in", "whisper-transcribe.encode", "whisper-transcribe.prefill",
         "whisper-transcribe.step", "whisper-transcribe.write", "whisper-transcribe.wait.out",
         "gpt-generate.load", "gpt-generate.wait.in", "gpt-generate.prefill", "gpt-generate.step"});
    for (const auto& [thread, spans] : trace.spans)
        for (const Span& span : spans) {
            EXPECT_GE(span.begin, static_cast<double>(begin) / 1e3) << span.name;
            EXPECT_LE(span.end, static_cast<double>(end) / 1e3) << span.name;
        }
    expect_nesting(trace);
    expect_flow(trace, samples + "story.mp3", "audio-decode", "whisper-transcribe");
    expect_flow(trace, samples + "key.wav", "audio-decode", "whisper-transcribe");

    write_text(folder.path() / "t", merged.out);
    const ProcessResult summary = run_tool("hark-trace", {"summary", p + "t"});
    EXPECT_EQ(summary.exit_code, 0) << summary.err;
    EXPECT_NE(summary.out.find("\nbound by "), std::string::npos) << summary.out;
}

TEST(Profile, OfTextIsFollowedByItsRecording) {
    const TemporaryDirectory folder;
    const std::string p = folder.path().string() + "/", key = samples_dir().string() + "/key.wav";
    const ProcessResult run =
        run_shell("set -o pipefail; audio-decode " + key + " --profile " + p +
                  "d | mel | whisper-transcribe --model demo --threads 1 -f jsonl | gpt-generate "
                  "--model demo "
                  "--threads 1 --max-tokens 5 --input-format jsonl --profile " +
                  p + "g && hark-trace merge " + p + "d " + p + "g");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const Trace trace(run.out.substr(run.out.find("[\n")));
    expect_flow(trace, key, "audio-decode", "gpt-generate");
}

TEST(Profile, OfACommandIsOneFile) {
    const TemporaryDirectory folder;
    const std::string p = folder.path().string() + "/", key = samples_dir().string() + "/key.wav";
    const ProcessResult run =
        script("transcribe.sh", "'" + key + "'" + kDemoFlags + " --profile " + p + "trace --stats");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find(kKey), std::string::npos);
    EXPECT_NE(run.err.find("weights"), std::string::npos) << run.err;
    const Trace trace(read_text(p + "trace"));
    EXPECT_EQ(trace.tools.size(), 3u);
    expect_flow(trace, key, "audio-decode", "whisper-transcribe");
    EXPECT_EQ(std::distance(fs::directory_iterator(p), fs::directory_iterator()), 1);
}

// On a machine with a GPU that is too hot.
TEST(Profile, OfABatchHasAllItsProcessesAndTheGpu) {
    Folder folder;
    folder.copy("key.wav", "in/a.wav");
    folder.copy("hat.wav", "in/b.wav");
    const std::string p = folder.path().string() + "/";
    const ProcessResult run = run_shell(
        "LD_LIBRARY_PATH='" + (build_dir() / "tests/fake_nvml").string() +
        "'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} FAKE_NVML=hot '" +
        (source_dir() / "pipelines/batch.sh").string() + "' -o " + p + "out " + p + "in" +
        kDemoFlags + " --device cpu --shard 1 --profile " + p + "trace --metrics " + p + "m.prom");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    expect_contains(run.err, "; whisper-transcribe bound the run, ");
    expect_contains(run.err, "gpu 0: busy 90.0%, throttled 100.0% (heat), 400 W");
    expect_contains(run.err, " J per hour of audio\n");
    const Trace trace(read_text(p + "trace"));
    EXPECT_EQ(trace.tools.size(), 5u);  // audio-decode twice, and what watches the GPU
    expect_nesting(trace);
    expect_flow(trace, p + "in/a.wav", "audio-decode", "whisper-transcribe");
    expect_flow(trace, p + "in/b.wav", "audio-decode", "whisper-transcribe");
    const std::string metrics = read_text(p + "m.prom");
    expect_contains(metrics, "state=\"done\"} 2\n");
    expect_contains(metrics, "\nhark_gpu_energy_joules_total ");
}

TEST(Profile, OfABatchReplacesNoOtherFileByItsMetrics) {
    Folder folder;
    folder.copy("key.wav", "in/a.wav");
    const std::string p = folder.path().string() + "/";
    write_text(folder.path() / "notes", "my notes\n");
    const ProcessResult run =
        run_shell("'" + (source_dir() / "pipelines/batch.sh").string() + "' -o " + p + "out " + p +
                  "in" + kDemoFlags + " --metrics " + p + "notes");
    EXPECT_EQ(run.exit_code, 1);
    expect_contains(run.err, "another kind of file");
    EXPECT_EQ(read_text(p + "notes"), "my notes\n");
    EXPECT_FALSE(fs::exists(p + "out/a.txt"));
    // As root it would take the place of a device.
    ASSERT_EQ(::mkfifo((p + "pipe").c_str(), 0600), 0);
    for (const char* flag : {"--metrics", "--profile"})
        expect_fails(script("batch.sh", "-o " + p + "out " + p + "in" + kDemoFlags + " " + flag +
                                            " " + p + "pipe"),
                     2, std::string(flag) + ": expected a file, got '" + p + "pipe'");
    EXPECT_TRUE(fs::is_fifo(p + "pipe"));
}

// A row for each request that runs at the same time, and the stages of the models' threads.
TEST(Profile, OfAServerHasItsRequests) {
    const TemporaryDirectory folder;
    const std::string file = (folder.path() / "trace").string();
    {
        Served server({"--model", kGptDemo, "--profile", file});
        EXPECT_EQ(server.post("/v1/completions", completion("Once")).status, 200);
        EXPECT_EQ(server.post("/v1/completions", completion("Twice")).status, 200);
        EXPECT_EQ(server.get("/health").status, 200);
        server.tool().signal(SIGTERM);
        EXPECT_EQ(server.tool().wait(), 0) << server.tool().err();
    }
    const ProcessResult merged = run_tool("hark-trace", {"merge", file});
    ASSERT_EQ(merged.exit_code, 0) << merged.err;
    const Trace trace(merged.out);
    expect_nesting(trace);
    expect_names(trace, {"hark-serve.load", "hark-serve.wait.in", "hark-serve.wait.request",
                         "hark-serve.tokenize", "hark-serve.prefill", "hark-serve.step"});
    size_t requests = 0;
    for (const auto& [thread, spans] : trace.spans)
        for (const Span& span : spans) requests += span.name == "hark-serve.wait.request";
    EXPECT_EQ(requests, 3u);
    const ProcessResult summary = run_tool("hark-trace", {"summary", file});
    EXPECT_EQ(summary.exit_code, 0) << summary.err;
    expect_contains(summary.out, "\nbound by hark-serve: busy for ");
}

TEST(Profile, OfAKilledToolCanBeRead) {
    const TemporaryDirectory folder;
    const std::string p = folder.path().string() + "/";
    const std::string samples = samples_dir().string() + "/";
    const ProcessResult run =
        run_shell("(audio-decode " + samples + "key.wav; sleep 1.2; audio-decode " + samples +
                  "hat.wav; sleep 3) | timeout -s KILL 3 mel --profile " + p +
                  "m > /dev/null; hark-trace summary " + p + "m");
    EXPECT_NE(run.out.find("mel "), std::string::npos) << run.out << run.err;
    EXPECT_NE(run.out.find("wait.in"), std::string::npos) << run.out << run.err;
}

TEST(Profile, OfTokenFilesHasTheirStages) {
    const TemporaryDirectory folder;
    const std::string p = folder.path().string() + "/";
    std::string text;
    for (int i = 0; text.size() < 100'000; ++i) text += "Line " + std::to_string(i * i) + ".\n";
    write_text(p + "text", text);
    const ProcessResult trained =
        run_tool("gpt-tokenize", {"--train-tokenizer", "--vocab-size", "300", "--output-dir",
                                  p + "tok", p + "text", "--profile", p + "trained"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const ProcessResult run = run_tool(
        "gpt-tokenize", {"--tokenizer", p + "tok", p + "text", "--profile", p + "t", "--stats"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.err.find("tokenize"), std::string::npos) << run.err;
    for (const auto& [file, stages] : std::map<std::string, std::vector<std::string>>{
             {"trained", {"read", "train"}}, {"t", {"read", "tokenize", "wait.out"}}})
        for (const std::string& stage : stages)
            EXPECT_NE(read_text(p + file).find("\"gpt-tokenize." + stage + "\""), std::string::npos)
                << stage << " in " << file;
}

// The spans of `tool` in the file are those of the stages, nested, and hark-trace reads them.
void expect_stages(const std::string& file, const std::string& tool,
                   const std::vector<std::string>& stages) {
    const ProcessResult merged = run_tool("hark-trace", {"merge", file});
    ASSERT_EQ(merged.exit_code, 0) << merged.err;
    const Trace trace(merged.out);
    expect_nesting(trace);
    std::set<std::string> expected;
    for (const std::string& stage : stages) expected.insert(concat(tool, ".", stage));
    EXPECT_EQ(trace.names(), expected);
}

TEST(Profile, OfConversionsHasTheirStages) {
    const TemporaryDirectory folder;
    const std::string p = folder.path().string() + "/";
    const auto convert = [&](const std::string& model, const std::string& to) {
        const ProcessResult run =
            run_tool("hark-model", {"convert", (source_dir() / "models" / model).string(), p + to,
                                    "--profile", p + to + ".json", "--stats"});
        EXPECT_EQ(run.exit_code, 0) << run.err;
        expect_contains(run.err, "convert");
        expect_stages(p + to + ".json", "hark-model convert", {"read", "convert", "write"});
    };
    convert("whisper-demo", "folder");
    convert("whisper-demo", "file.bin");
    convert("gpt-demo", "folder2");
}

TEST(Profile, OfVerificationHasItsStages) {
    const TemporaryDirectory folder;
    const std::string p = folder.path().string() + "/";
    const std::string key = (samples_dir() / "key.wav").string();
    write_text(p + "reference", "{\"source\":\"" + key + "\",\"text\":\"key\"}\n");
    const auto verify = [&](std::vector<std::string> words,
                            const std::vector<std::string>& stages) {
        words.insert(words.begin(), {"verify", (source_dir() / "models/whisper-demo").string()});
        words.insert(words.end(), {"--profile", p + "trace.json"});
        const ProcessResult run = run_tool("hark-model", words);
        EXPECT_EQ(run.exit_code, 0) << run.err;
        expect_stages(p + "trace.json", "hark-model verify", stages);
    };
    verify({}, {"read"});
    verify({key, "--reference", p + "reference", "--at-most", "1000", "--threads", "1"},
           {"read", "load", "decode", "mel", "window", "encode", "language", "prefill", "step",
            "compare"});
}

TEST(Profile, OfAdviceHasItsStages) {
    const TemporaryDirectory folder;
    const std::string file = (folder.path() / "trace.json").string();
    write_text(folder.path() / "prompts", "Once upon\n");
    const ProcessResult run = run_tool(
        "hark-advise", {"--model", (source_dir() / "models/gpt-demo").string(), "--device", "cpu",
                        "--threads", "1", "--max-tokens", "4", "--prompt-tokens", "4", "--run",
                        "--input", (folder.path() / "prompts").string(), "--profile", file});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    expect_stages(file, "hark-advise", {"measure", "read", "load", "prefill", "step"});
}

TEST(Profile, OfShardsHasTheirStages) {
    const TemporaryDirectory folder;
    const std::string p = folder.path().string() + "/";
    const auto shard = [&](const std::string& command, std::vector<std::string> words,
                           const std::vector<std::string>& stages) {
        words.insert(words.begin(), {command, "--profile", p + command + ".json"});
        const ProcessResult run = run_tool("hark-shard", words);
        EXPECT_EQ(run.exit_code, 0) << run.err;
        expect_stages(p + command + ".json", "hark-shard " + command, stages);
        return run.out;
    };
    write_text(p + "list", "{\"audio_filepath\":\"/a.wav\",\"duration\":1.5,\"id\":\"a\"}\n");
    shard("plan", {p + "list", "-o", p + "shards"}, {"read", "hash", "write"});
    fs::create_directories(p + "work/out/.hark");
    write_text(p + "work/out/000001.jsonl", "{\"text\":\" Word.\",\"start\":0,\"end\":1}\n");
    write_text(p + "work/out/.hark/seconds", "/x/in/000001.wav\t1.50\n");
    write_text(p + "work/job.json", "{}\n");
    write_text(p + "work/unfetched.tsv", "");
    fs::create_directory(p + "results");
    shard("job", {p + "shards", "--model", (source_dir() / "models/whisper-demo").string()},
          {"hash", "wait.out"});
    shard("collect", {p + "shards", "00001", p + "work", p + "results"}, {"read", "hash", "write"});
    shard("check", {p + "shards", p + "results"}, {"read", "hash", "wait.out"});
    const std::string text = shard("merge", {p + "shards", p + "results", "--format", "kaldi-text"},
                                   {"read", "hash", "write", "wait.out"});
    EXPECT_EQ(text, "a Word.\n");
}

TEST(Profile, OfRedactionHasItsStages) {
    const TemporaryDirectory folder;
    const std::string p = folder.path().string() + "/";
    const auto redact = [&](const std::string& flag, const std::string& file) {
        const ProcessResult run =
            run_tool("hark-redact", {flag, file}, "{\"text\":\" Call 415-555-0123.\"}\n");
        EXPECT_EQ(run.exit_code, 0) << run.err;
        EXPECT_EQ(run.out, "{\"text\":\" Call [PHONE].\"}\n");
    };
    redact("--profile", p + "t");
    expect_stages(p + "t", "hark-redact", {"wait.in", "read", "redact", "wait.out"});
    redact("--metrics", p + "m");
    expect_contains(read_text(p + "m"), "{tool=\"hark-redact\",stage=\"redact\"}");
}

TEST(Profile, OfTrainingHasItsStages) {
    const TemporaryDirectory folder;
    const std::string p = folder.path().string() + "/";
    const ProcessResult run = run_tool(
        "gpt-train",
        {"--train",      "synthetic", "--steps",      "2",       "--layers",          "1",
         "--heads",      "2",         "--width",      "32",      "--sequence-length", "32",
         "--batch-size", "2",         "--output-dir", p + "run", "--profile",         p + "t",
         "--stats",      "--metrics", p + "m"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const std::string text = read_text(p + "t");
    for (const std::string stage : {"read", "step", "write"})
        EXPECT_NE(text.find("\"gpt-train." + stage + "\""), std::string::npos) << stage;
    for (const std::string owner : {"weights", "gradients", "moments", "activations"})
        EXPECT_NE(run.err.find(owner), std::string::npos) << owner << " in " << run.err;
    EXPECT_NE(read_text(p + "m").find("hark_run_seconds_total{tool=\"gpt-train\""),
              std::string::npos);
}

}  // namespace
}  // namespace hark::test
