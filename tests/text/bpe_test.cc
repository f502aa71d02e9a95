// Token ids against the tokenizers library and tiktoken (tests/golden/bpe.py).
#include "text/bpe.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/error.h"
#include "core/json/json.h"
#include "support/golden.h"
#include "support/process.h"
#include "text/utf8.h"

using namespace hark;
using hark::test::source_dir;

namespace {

std::string bytes_from_hex(const std::string& hex) {
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

// Encodes every golden input and compares, then decodes and compares with the text.
void expect_golden_ids(const Bpe& bpe, const std::string& vocabulary) {
    const auto golden = test::golden("bpe.json");
    int compared = 0;
    for (const auto& test_case : golden["cases"]) {
        const bool broken = test_case.contains("hex");
        const std::string input = broken ? bytes_from_hex(test_case["hex"].get<std::string>())
                                         : test_case["text"].get<std::string>();
        const auto wanted = test_case["ids"][vocabulary].get<std::vector<int32_t>>();
        const std::vector<int32_t> ids = bpe.encode(input);
        EXPECT_EQ(ids, wanted) << vocabulary << ": " << test_case.dump();
        EXPECT_EQ(bpe.decode(ids), broken ? test_case["replaced"].get<std::string>() : input);
        ++compared;
    }
    EXPECT_GT(compared, 150);
}

std::filesystem::path official(const std::string& name) {
    return source_dir() / "../shared/data" / name;
}

}  // namespace

TEST(Bpe, GptDemoEqualsTokenizersLibrary) {
    const Bpe bpe = Bpe::from_directory(source_dir() / "models/gpt-demo");
    EXPECT_EQ(bpe.vocab_size(), 4096);
    expect_golden_ids(bpe, "gpt-demo");
}

TEST(Bpe, WhisperDemoEqualsTokenizersLibrary) {
    const Bpe bpe = Bpe::from_directory(source_dir() / "models/whisper-demo");
    EXPECT_EQ(bpe.vocab_size(), 5448);
    expect_golden_ids(bpe, "whisper-demo");
}

TEST(Bpe, SpecialTokensOfWhisper) {
    const Bpe bpe = Bpe::from_directory(source_dir() / "models/whisper-demo");
    EXPECT_EQ(bpe.specials().size(), 1608u);
    EXPECT_EQ(bpe.special("<|endoftext|>"), 3840);
    EXPECT_EQ(bpe.special("<|startoftranscript|>"), 3841);
    EXPECT_EQ(bpe.special("<|30.00|>"), 5447);
    EXPECT_EQ(bpe.special("<|30.02|>"), std::nullopt);
    EXPECT_EQ(bpe.special("the"), std::nullopt);
    EXPECT_TRUE(bpe.is_special(3841));
    EXPECT_FALSE(bpe.is_special(0));
    std::vector<int32_t> ids = bpe.encode(" hello");
    ids.insert(ids.begin(), 3841);
    ids.push_back(3840);
    EXPECT_EQ(bpe.decode(ids), " hello");
    EXPECT_EQ(bpe.decode(ids, true), "<|startoftranscript|> hello<|endoftext|>");
    EXPECT_EQ(bpe.bytes_of(3842), "<|en|>");
    EXPECT_THROW(bpe.bytes_of(5448), Error);
    EXPECT_THROW(bpe.bytes_of(-1), Error);
}

TEST(Bpe, VocabAndMergesGiveTheSameIds) {
    const test::TemporaryDirectory directory;
    for (const char* file : {"vocab.json", "merges.txt"})
        std::filesystem::copy_file(source_dir() / "models/gpt-demo" / file,
                                   directory.path() / file);
    expect_golden_ids(Bpe::from_directory(directory.path()), "gpt-demo");
}

TEST(Bpe, OfficialGpt2Ranks) {
    if (!std::filesystem::exists(official("gpt2.tiktoken")))
        GTEST_SKIP() << "no ../shared/data/gpt2.tiktoken next to the source: it is not to commit";
    const Bpe bpe = Bpe::from_tiktoken(official("gpt2.tiktoken"));
    EXPECT_EQ(bpe.vocab_size(), 50256);
    EXPECT_EQ(bpe.encode(" Hello, world!"), (std::vector<int32_t>{18435, 11, 995, 0}));
    EXPECT_EQ(
        bpe.encode(" And so my fellow Americans, ask not what your country can do for you, "
                   "ask what you can do for your country."),
        (std::vector<int32_t>{843, 523, 616, 5891, 3399, 11,  1265, 407, 644, 534, 1499, 460, 466,
                              329, 345, 11,  1265, 644,  345, 460,  466, 329, 534, 1499, 13}));
    expect_golden_ids(bpe, "gpt2");
}

TEST(Bpe, OfficialMultilingualRanks) {
    if (!std::filesystem::exists(official("multilingual.tiktoken")))
        GTEST_SKIP() << "no ../shared/data/multilingual.tiktoken next to the source: it is not to "
                        "commit";
    const Bpe bpe = Bpe::from_tiktoken(official("multilingual.tiktoken"));
    EXPECT_EQ(bpe.vocab_size(), 50257);
    EXPECT_EQ(bpe.bytes_of(50256), "");
    EXPECT_EQ(bpe.encode(" hallo"), (std::vector<int32_t>{324, 1913}));
    EXPECT_EQ(bpe.encode(" Hello, world!"), (std::vector<int32_t>{2425, 11, 1002, 0}));
    expect_golden_ids(bpe, "multilingual");
}

TEST(Bpe, RoundTripsEveryCodePoint) {
    const Bpe bpe = Bpe::from_directory(source_dir() / "models/gpt-demo");
    std::string text;
    for (char32_t point = 0; point <= 0x10FFFF; point += 1 + point / 0x3000)
        if (point < 0xD800 || point > 0xDFFF) append_code_point(text, point);
    EXPECT_EQ(bpe.decode(bpe.encode(text)), text);
}

// A merge loop that is quadratic in a word's length would take minutes for the second text.
TEST(Bpe, MegabyteIsFast) {
    const Bpe bpe = Bpe::from_directory(source_dir() / "models/gpt-demo");
    std::string prose, word;
    while (prose.size() < 1'000'000)
        prose += "Once upon a time, there was a miller who left no more riches to his sons. ";
    while (word.size() < 1'000'000) word += "antidisestablishmentarianism";
    for (const std::string& text : {prose, word}) {
        const auto begin = std::chrono::steady_clock::now();
        const std::vector<int32_t> ids = bpe.encode(text);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        RecordProperty("seconds", std::to_string(took.count()));
        std::printf("%zu bytes: %zu tokens in %.3f s\n", text.size(), ids.size(), took.count());
        EXPECT_LT(took.count(), 20.0);  // wide: the sanitizers' build runs this too
        EXPECT_EQ(bpe.decode(ids), text);
    }
}
