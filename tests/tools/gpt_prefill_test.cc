// gpt-generate --prefill-only | gpt-generate --from-cache: the answers of one process.
#include "core/error.h"
#include "tools/gpt_generate.h"

namespace hark::test {
namespace {

const std::string kPrefillPrompt = "Once upon a time there was a king who";

// The stream of a prompt that is given these flags.
std::string stream_of(const Arguments& flags, const std::string& prompt = kPrefillPrompt) {
    const ProcessResult result = generate(joined({"--prefill-only"}, flags), prompt);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result.out;
}

ProcessResult from_stream(const Arguments& flags, const std::string& stream) {
    return generate(joined({"--from-cache", "-"}, flags), stream);
}

TEST(GptPrefill, GivesTheTextOfOneProcess) {
    for (const char* type : {"auto", "f16", "bf16", "q8_0"})
        for (const Arguments& more :
             {Arguments{"--temperature", "0"}, Arguments{"--seed", "7", "--n", "3"},
              Arguments{"--batch-invariant", "--repetition-penalty", "1.2"}}) {
            if (type != std::string("auto") && more[0] != "--seed") continue;
            SCOPED_TRACE(concat(type, " ", more[0]));
            const Arguments compute = more[0] == "--batch-invariant"
                                          ? Arguments{more[0], "--kv-dtype", type}
                                          : Arguments{"--kv-dtype", type};
            const Arguments all = joined(
                {"--kv-dtype", type, "--max-tokens", "30", "--format", "jsonl", "--logprobs", "2"},
                more);
            const std::vector<std::string> expected = lines_of(generate(all, kPrefillPrompt).out);
            const ProcessResult found = from_stream(all, stream_of(compute));
            EXPECT_EQ(found.exit_code, 0) << found.err;
            const std::vector<std::string> lines = lines_of(found.out);
            ASSERT_EQ(lines.size(), expected.size());
            for (size_t i = 0; i < lines.size(); ++i) {
                json one = untimed(expected[i]), two = untimed(lines[i]);
                if (i == 0) {
                    EXPECT_EQ(two["cached_tokens"], two["prompt_tokens"]);
                    EXPECT_EQ(one["cached_tokens"], 0);
                    one.erase("cached_tokens"), two.erase("cached_tokens");
                }
                EXPECT_EQ(two, one);
            }
        }
}

TEST(GptPrefill, GoesThroughAFileAndAPipe) {
    const TemporaryDirectory folder;
    const std::string file = folder.path() / "prompt.safetensors";
    const std::string expected = generate(joined(kGreedy, {"--echo"}), kPrefillPrompt).out;
    write_text(file, stream_of({}));
    const Arguments flags = joined(kGreedy, {"--echo", "--from-cache", file});
    EXPECT_EQ(generate(flags, "").out, expected);
    const std::string tool = concat("gpt-generate --threads 1 -m ", kGptDemo, " ");
    const ProcessResult piped =
        run_shell(concat(tool, "--prefill-only -p '", kPrefillPrompt, "' | ", tool,
                         "--from-cache - --echo --temperature 0 --max-tokens 20"));
    EXPECT_EQ(piped.out, expected) << piped.err;
    // The file is a prompt cache too.
    const ProcessResult cached =
        generate(joined(kGreedy, {"--echo", "--prompt-cache", file}), kPrefillPrompt);
    EXPECT_EQ(cached.out, expected) << cached.err;
}

TEST(GptPrefill, AnswersHoldToTheirConstraint) {
    const Arguments flags = {"--regex", "[a-z]{3} [0-9]{2}", "--max-tokens", "20"};
    const std::string expected = generate(flags, kPrefillPrompt).out;
    EXPECT_EQ(from_stream(flags, stream_of({})).out, expected);
    EXPECT_EQ(expected.size(), 7u);
}

TEST(GptPrefill, RefusesOtherStreams) {
    const std::string stream = stream_of({});
    const auto wrong = [&](const Arguments& flags, const std::string& input, const char* message) {
        const ProcessResult result = from_stream(flags, input);
        EXPECT_EQ(result.exit_code, 1);
        EXPECT_EQ(result.out, "");
        expect_contains(result.err, message);
    };
    wrong({"--kv-dtype", "f16"}, stream, "has keys and values in f32, this run in f16");
    wrong({"--batch-invariant"}, stream, "was computed without --batch-invariant");
    wrong({"--dtype", "bf16"}, stream, "stdin: document 1: ");
    wrong({}, "", "stdin: expected a prompt's cache, found nothing");
    wrong({}, "Once upon a time", "stdin: document 1: ");
    wrong({}, stream.substr(0, 2000), "stdin: document 1: the stream ends inside the ");
    wrong({}, stream.substr(0, stream.size() - 1), "the stream ends inside the document");
    wrong({}, stream + stream, "expected one prompt's cache, found more after it");
    wrong({"--context", "15", "--max-tokens", "10"}, stream, "the context");
}

TEST(GptPrefill, RefusesFlagsOfTheOtherHalf) {
    const auto refused = [](const Arguments& flags, const char* message) {
        const ProcessResult result = generate(flags, kPrefillPrompt);
        EXPECT_EQ(result.exit_code, 2);
        EXPECT_EQ(result.out, "");
        expect_contains(result.err, message);
    };
    refused({"--prefill-only", "--from-cache", "-"}, "exclude each other");
    refused({"--prefill-only", "--input-format", "lines"}, "it takes one prompt");
    refused({"--prefill-only", "--format", "jsonl"}, "it writes no answer");
    refused({"--prefill-only", "--echo"}, "--prefill-only does not work with --echo");
    refused({"--prefill-only", "--prompt-cache", "a"}, "does not work with --prompt-cache");
    refused({"--from-cache", "-", "-p", "A dog"}, "the prompt is in the stream");
    refused({"--from-cache", "-", "--prompt-lookup", "3"}, "does not work with --prompt-lookup");
    const ProcessResult empty = generate({"--prefill-only"}, "");
    EXPECT_EQ(empty.exit_code, 1);
    expect_contains(empty.err, "the prompt is empty");
}

}  // namespace
}  // namespace hark::test
