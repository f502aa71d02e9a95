// Command lines and inputs that whisper-transcribe refuses: one line that says why.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/process.h"

namespace hark::test {
namespace {

struct WrongCall {
    const char* name;
    std::vector<std::string> arguments;
    std::string input;
    int exit_code;
    const char* message;
};

class WhisperTranscribeWrong : public testing::TestWithParam<WrongCall> {};

TEST_P(WhisperTranscribeWrong, SaysSo) {
    const WrongCall& call = GetParam();
    const ProcessResult result = run_tool("whisper-transcribe", call.arguments, call.input);
    EXPECT_EQ(result.exit_code, call.exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("whisper-transcribe: ", 0), 0u) << result.err;
    EXPECT_NE(result.err.find(call.message), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    if (call.exit_code == 2) {
        EXPECT_NE(result.err.find("--help"), std::string::npos);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Contract, WhisperTranscribeWrong,
    testing::Values(
        WrongCall{"UnknownFlag", {"--modle", "demo"}, "x", 2, "--modle"},
        WrongCall{"UnknownLetter", {"-x"}, "x", 2, "unknown option '-x'"},
        WrongCall{"ImpatientBeams",
                  {"--model", "demo", "--beam-size", "2", "--patience", "0.1"},
                  "x",
                  2,
                  "--patience: 0.1 is too low for --beam-size 2"},
        WrongCall{"AbbreviatedFlag", {"--mod", "demo"}, "x", 2, "--mod"},
        WrongCall{"EmptyModel", {"--model", ""}, "x", 2, "--model: expected a name"},
        WrongCall{"EmptyVocabulary", {"--model", "demo", "--tokenizer", ""}, "x", 2, "--tokenizer"},
        WrongCall{"AFile",
                  {"talk.mp3"},
                  "x",
                  2,
                  "type: audio-decode talk.mp3 | mel | whisper-transcribe, or: hark transcribe "
                  "talk.mp3"},
        WrongCall{"AFileWithASpace",
                  {"Bob's talk.mp3"},
                  "x",
                  2,
                  "audio-decode 'Bob'\\''s talk.mp3' | mel"},
        WrongCall{"DetectionAsSubtitles",
                  {"--model", "demo", "--task", "detect", "--format", "srt"},
                  "x",
                  2,
                  "expected --format text or jsonl"},
        WrongCall{"DetectionOfAKnownLanguage",
                  {"--model", "demo", "--task", "detect", "--language", "de"},
                  "x",
                  2,
                  "--task detect: contradicts --language de"},
        WrongCall{"UnknownFormat", {"--model", "demo", "--format", "doc"}, "x", 2, "'doc'"},
        WrongCall{"TwoFormatsOnStdout",
                  {"--model", "demo", "--format", "srt,vtt"},
                  "x",
                  2,
                  "--output-dir"},
        WrongCall{"UnknownTask", {"--model", "demo", "--task", "sing"}, "x", 2, "'sing'"},
        WrongCall{"WrongNumber", {"--model", "demo", "--best-of", "0"}, "x", 2, "--best-of"},
        WrongCall{"SilenceThresholdWithoutWords",
                  {"--model", "demo", "--hallucination-silence-threshold", "2"},
                  "x",
                  2,
                  "--word-timestamps"},
        WrongCall{"PunctuationWithoutWords",
                  {"--model", "demo", "--append-punctuations", "."},
                  "x",
                  2,
                  "--word-timestamps"},
        WrongCall{"LayoutWithoutWords",
                  {"--model", "demo", "--format", "srt", "--max-line-width", "40"},
                  "x",
                  2,
                  "--max-line-width: needs --word-timestamps"},
        WrongCall{"WrongDevice", {"--model", "demo", "--device", "tpu"}, "x", 2, "tpu"},
        WrongCall{"NoModel", {}, "x", 1, "--model demo"},
        WrongCall{"UnknownModel", {"--model", "none"}, "x", 1, "'none'"},
        WrongCall{"MissingModelDirectory", {"--model", "./none"}, "x", 1, "./none"},
        WrongCall{"AnotherModel", {"--model", "gpt-demo"}, "x", 1, "whisper"},
        WrongCall{"UnknownLanguage", {"--model", "demo", "--language", "xx"}, "x", 1, "'xx'"},
        WrongCall{"Cuda", {"--model", "demo", "--device", "cuda"}, "x", 1, "GPU"},
        WrongCall{"NothingOnStdin", {"--model", "demo"}, "", 1, "stdin: no data"},
        WrongCall{"Garbage", {"--model", "demo"}, std::string(100, 'g'), 1, "document 1"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hark::test
