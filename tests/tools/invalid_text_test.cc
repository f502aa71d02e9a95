// What the tools of texts say of a text that is not UTF-8.
#include "tools/gpt_generate.h"

using namespace hark::test;

namespace {

const std::string kLatin = "one\ncaf\xe9 two\nna\xefve\n",
                  kReplaced = "one\ncaf\uFFFD two\nna\uFFFDve\n";
constexpr const char* kWarning =
    "not UTF-8 (got 0xE9 as byte 4 of the line); such bytes are read as U+FFFD; "
    "iconv -f ISO-8859-1 -t UTF-8 converts Latin-1\n";

struct Case {
    std::string tool;
    Arguments arguments;
};

const std::vector<Case> kCases = {
    {"gpt-generate", {"--threads", "1", "--temperature", "0", "--max-tokens", "1"}},
    {"gpt-generate",
     {"--threads", "1", "--temperature", "0", "--max-tokens", "1", "--input-format", "lines"}},
    {"gpt-embed", {"--threads", "1"}},
    {"gpt-eval", {"--threads", "1", "--input-format", "text"}},
    {"gpt-tokenize", {}},
};

}  // namespace

TEST(InvalidText, IsNamedOnceWithItsLine) {
    for (const Case& one : kCases) {
        const Arguments arguments = joined({"--model", kGptDemo}, one.arguments);
        const ProcessResult run = run_tool(one.tool, arguments, kLatin);
        EXPECT_EQ(run.exit_code, 0) << one.tool << run.err;
        EXPECT_EQ(run.err, one.tool + ": stdin: line 2: " + kWarning);
        const ProcessResult replaced = run_tool(one.tool, arguments, kReplaced);
        EXPECT_EQ(replaced.err, "") << one.tool;
        EXPECT_EQ(run.out, replaced.out) << one.tool;
        EXPECT_EQ(run_tool(one.tool, joined(arguments, {"--quiet"}), kLatin).err, "") << one.tool;
    }
}

TEST(InvalidText, OfEachFile) {
    const TemporaryDirectory directory;
    const std::string latin = directory.path() / "latin.txt", whole = directory.path() / "utf8.txt";
    write_text(latin, kLatin);
    write_text(whole, kReplaced);
    const std::string said = "gpt-tokenize: " + latin + ": line 2: " + kWarning;
    EXPECT_EQ(run_tool("gpt-tokenize", {"--model", kGptDemo, latin, whole, latin}).err,
              said + said);
    const std::string trained = directory.path() / "tok";
    const ProcessResult train = run_tool(
        "gpt-tokenize",
        {"--train-tokenizer", "--vocab-size", "256", "--output-dir", trained, whole, latin});
    EXPECT_EQ(train.exit_code, 0) << train.err;
    EXPECT_EQ(train.err, said);
}

// There the line has no text: it is an error.
TEST(InvalidText, InAJsonLine) {
    const std::string lines = "{\"prompt\":\"One\"}\n{\"prompt\":\"caf\xe9\"}\n";
    const ProcessResult run = generate(
        {"--input-format", "jsonl", "--format", "jsonl", "--temperature", "0", "--max-tokens", "1"},
        lines);
    EXPECT_EQ(run.exit_code, 1);
    expect_contains(run.err, "gpt-generate: stdin: line 2: ");
    ASSERT_EQ(lines_of(run.out).size(), 2u);
    EXPECT_EQ(json::parse(lines_of(run.out)[1])["error"]["code"], "invalid_json");
}
