// whisper-transcribe_by with models in other formats than Hugging Face's: the text is the same.
#include <gtest/gtest.h>

#include "support/process.h"
#include "whisper/model_writers.h"

namespace hark::test {
namespace {

const std::string& two_mels() {
    static const std::string kMel =
        run_shell("cd " + samples_dir().string() + " && audio-decode hat.wav nacht.wav | mel").out;
    return kMel;
}

ProcessResult transcribe_by(const std::string& model, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"--model", model, "--threads", "1", "--fallback-temperatures", "none"});
    return run_tool("whisper-transcribe", arguments, two_mels());
}

// Segments with tokens, times and probabilities to the last digit.
std::string demo_says() {
    return transcribe_by("demo", {"--dtype", "f32", "--format", "jsonl"}).out;
}

TEST(ModelFormats, OpenaisFileTakesAVocabulary) {
    TemporaryDirectory directory;
    const std::string model = (directory.path() / "demo.pt").string();
    write_openai(model);
    ProcessResult result = transcribe_by(model, {});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("--tokenizer"), std::string::npos) << result.err;
    std::filesystem::create_directory(directory.path() / "words");
    const std::string ranks = (directory.path() / "words/demo.tiktoken").string();
    const std::string demo = (source_dir() / "models/whisper-demo").string();
    write_ranks(ranks);
    const std::string expected = demo_says();
    ASSERT_NE(expected.find("his hat"), std::string::npos) << expected;
    for (const std::string& vocab : {ranks, demo, demo + "/tokenizer.json"}) {
        result =
            transcribe_by(model, {"--tokenizer", vocab, "--dtype", "f32", "--format", "jsonl"});
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(result.out, expected) << vocab;
    }
    result = transcribe_by(model, {"--tokenizer", model});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("demo.pt: line 1"), std::string::npos) << result.err;
}

TEST(ModelFormats, Ctranslate2sDirectoryHasAllItNeeds) {
    TemporaryDirectory directory;
    std::filesystem::copy(source_dir() / "models/whisper-demo/tokenizer.json",
                          directory.path() / "tokenizer.json");
    write_text(directory.path() / "config.json", "{\"alignment_heads\": null}");
    write_text(directory.path() / "model.bin",
               Ctranslate2Writer(Ctranslate2Writer::Type::f16).text());
    const std::string model = directory.path().string();
    const ProcessResult floats = transcribe_by(model, {"--dtype", "f32", "--format", "jsonl"});
    EXPECT_EQ(floats.out, demo_says()) << floats.err;
    write_text(directory.path() / "model.bin",
               Ctranslate2Writer(Ctranslate2Writer::Type::int8).text());
    const ProcessResult int8 = transcribe_by(model, {"--format", "text"});
    ASSERT_NE(int8.out, "") << int8.err;
    EXPECT_EQ(int8.out, transcribe_by("demo", {"--format", "text"}).out);
}

}  // namespace
}  // namespace hark::test
