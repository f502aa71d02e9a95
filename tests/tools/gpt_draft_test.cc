// gpt-generate --draft-model: the text without it, in fewer passes.
#include "core/error.h"
#include "core/files/files.h"
#include "tools/gpt_generate.h"

namespace hark::test {
namespace {

const std::string kPrompts =
    "Once upon a time there was a king\n\nThe old woman said to the fox\nA dog and a cat\n";

// The demo model with its first layer alone.
std::string shallow_demo(const TemporaryDirectory& folder) {
    const std::filesystem::path path = folder.path() / "shallow";
    std::filesystem::copy(kGptDemo, path, std::filesystem::copy_options::recursive);
    json config = json::parse(read_text(path / "config.json"));
    config["n_layer"] = 1;
    write_text(path / "config.json", config.dump());
    return path;
}

TEST(GptDraft, ChangesNoText) {
    const TemporaryDirectory folder;
    for (const std::string& draft : {kGptDemo, shallow_demo(folder)})
        for (const Arguments& flags :
             {Arguments{"--temperature", "0", "--max-tokens", "33"},
              Arguments{"--temperature", "1", "--max-tokens", "20", "--n", "2", "--seed", "5"},
              Arguments{"--temperature", "0", "--stop", " the", "--stop", "zzz"},
              Arguments{"--regex", "([a-z]+ ){3}[0-9]{2}", "--max-tokens", "40"}}) {
            if (draft == kGptDemo && flags[1] == "0") continue;  // the drawn ones are harder
            SCOPED_TRACE(concat(draft, " ", flags[0], " ", flags[1]));
            const Arguments lines = joined(flags, {"--input-format", "lines"});
            const ProcessResult plain = generate(lines, kPrompts);
            const ProcessResult drafted =
                generate(joined(lines, {"--draft-model", draft}), kPrompts);
            EXPECT_EQ(drafted.exit_code, plain.exit_code) << drafted.err;
            EXPECT_EQ(drafted.out, plain.out);
            const Arguments one = joined(flags, {"-p", "Once upon a time"});
            EXPECT_EQ(
                generate(joined(one, {"--draft-model", draft, "--draft-tokens", "7"}), "").out,
                generate(one, "").out);
        }
}

// Proposed and accepted tokens of the one answer.
std::pair<int, int> counts(const std::string& draft, const Arguments& more) {
    const ProcessResult result =
        generate(joined({"-p", "Once upon a time", "--temperature", "0", "--max-tokens", "31",
                         "--stats", "--draft-model", draft},
                        more),
                 "");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::vector<std::string> lines = lines_of(result.err);
    if (lines.size() < 3 || !lines[2].starts_with("stage")) return {-1, -1};
    expect_contains(lines[0], "proposed tokens  accepted tokens");
    std::istringstream row(lines[1]);
    std::vector<std::string> cells;
    for (std::string cell; row >> cell;) cells.push_back(cell);
    return {std::stoi(cells.at(5)), std::stoi(cells.at(6))};
}

TEST(GptDraft, StatsCountWhatIsProposed) {
    // The first token comes with the prompt: six passes of five tokens follow.
    EXPECT_EQ(counts(kGptDemo, {}), std::pair(24, 24));
    EXPECT_EQ(counts(kGptDemo, {"--draft-tokens", "1"}), std::pair(15, 15));
    const TemporaryDirectory folder;
    const auto [proposed, accepted] = counts(shallow_demo(folder), {});
    EXPECT_GT(accepted, 0);
    EXPECT_GT(proposed, accepted);
}

TEST(GptDraft, RefusesWhatDoesNotFit) {
    const auto refused = [](const Arguments& flags, int code, const char* message) {
        const ProcessResult result = generate(flags, "a");
        EXPECT_EQ(result.exit_code, code);
        EXPECT_EQ(result.out, "");
        expect_contains(result.err, message);
    };
    refused({"--draft-tokens", "3"}, 2, "--draft-tokens: needs --draft-model");
    refused({"--draft-model", kGptDemo, "--prompt-lookup", "3"}, 2, "exclude each other");
    refused({"--draft-model", kGptDemo, "--prompt-cache", "a"}, 2,
            "do not work with --prompt-cache");
    refused({"--draft-model", "/no/model"}, 1, "/no/model");
    const TemporaryDirectory folder;
    const std::filesystem::path other = shallow_demo(folder);
    json tokenizer = json::parse(read_text(other / "tokenizer.json"));
    json& vocabulary = tokenizer["model"]["vocab"];
    std::swap(vocabulary["a"], vocabulary["b"]);
    write_text(other / "tokenizer.json", tokenizer.dump());
    refused({"--draft-model", other}, 1, "the tokenizer is another one: its token ");
}

}  // namespace
}  // namespace hark::test
