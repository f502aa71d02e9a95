// What the readers of JSON lines have in common: strings that are no Unicode.
#include "core/json/json.h"
#include "support/expect.h"
#include "text/utf8.h"

namespace hark::test {
namespace {

// Python's json writes half of a surrogate pair, which has no form in UTF-8.
TEST(JsonLines, HalfOfASurrogatePairIsTheLinesError) {
    const std::string demo = source_dir() / "models/gpt-demo";
    const TemporaryDirectory directory;
    const std::string references = (directory.path() / "references.jsonl").string();
    write_text(references, "{\"source\": \"a\", \"text\": \"b\"}\n");
    const std::string line = R"({"source": "a", "text": "b\ud800c"})"
                             "\n";
    for (const auto& [tool, arguments] :
         std::vector<std::pair<std::string, std::vector<std::string>>>{
             {"gpt-generate",
              {"--model", demo, "--input-format", "jsonl", "--format", "jsonl", "--max-tokens",
               "1"}},
             {"gpt-embed", {"--model", demo, "--input-format", "jsonl"}},
             {"gpt-eval", {"--model", demo}},
             {"gpt-tokenize", {"--model", demo, "--input-format", "jsonl", "--format", "ids"}},
             {"whisper-eval", {"--reference", references}}}) {
        const ProcessResult result = run_tool(tool, arguments, line);
        EXPECT_EQ(result.exit_code, 1) << tool << result.err;
        expect_contains(result.err, "stdin: line 1: ");
        expect_contains(result.err, "a string has half of a surrogate pair (\\ud800 to \\udfff)\n");
        EXPECT_EQ(replace_invalid(result.out), result.out) << tool;
    }
    write_text(references, line);
    expect_fails_without_output(run_tool("whisper-eval", {"--reference", references},
                                         "{\"source\": \"a\", \"text\": \"b\"}\n"),
                                1, references + ": line 1: a string has half of a surrogate pair");
}

}  // namespace
}  // namespace hark::test
