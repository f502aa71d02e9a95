// Whisper's tokenizer on the tokenizer_demo vocabulary and, where they are at hand, on the official
// ones. Golden: tests/tokenizer_golden/whisper_numbers.py,
// tests/tokenizer_golden/official_shapes.py.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json/json.h"
#include "support/byte_vocabulary.h"
#include "support/golden.h"
#include "support/process.h"
#include "whisper/model/tokenizer.h"

namespace hark::whisper {
namespace {

using nlohmann::json;

TEST(Tokenizer, DemoIdsEqualReference) {
    const Tokenizer tokenizer(test::whisper_demo(), 5448);
    const json all = test::golden("whisper_numbers.json");
    for (const json& entry : all["tokenizer"])
        EXPECT_EQ(tokenizer.encode(entry[0].get<std::string>()),
                  entry[1].get<std::vector<int32_t>>())
            << entry[0];
}

TEST(Tokenizer, DemoSpecialTokensComeFromItsFiles) {
    const SpecialTokens special = Tokenizer(test::whisper_demo(), 5448).special();
    EXPECT_EQ(special.eot, 3840);
    EXPECT_EQ(special.sot, 3841);
    EXPECT_EQ(special.languages.at("en"), 3842);
    EXPECT_EQ(special.languages.size(), 99u);
    EXPECT_EQ(special.translate, 3941);
    EXPECT_EQ(special.transcribe, 3942);
    EXPECT_EQ(special.sot_prev, 3944);
    EXPECT_EQ(special.no_timestamps, 3946);
    EXPECT_EQ(special.timestamp_begin, 3947);
    EXPECT_TRUE(special.multilingual);
}

TEST(Tokenizer, DecodeKeepsSpecialContentsAndLeavesTimestampsOut) {
    const Tokenizer tokenizer(test::whisper_demo(), 5448);
    std::vector<int32_t> ids = tokenizer.encode(" hello");
    ids.insert(ids.begin(), 3950);
    ids.push_back(3844);
    EXPECT_EQ(tokenizer.decode(ids), " hello<|de|>");
}

TEST(Tokenizer, GenerationConfigFillsWhatTheVocabularyLacks) {
    const Bpe bpe = Bpe::parse_tiktoken(test::byte_vocabulary(), "ranks");
    const char* generation = R"({"eos_token_id": 256, "decoder_start_token_id": 257,
        "no_timestamps_token_id": 262, "prev_sot_token_id": 261, "is_multilingual": true,
        "lang_to_id": {"<|en|>": 258}, "task_to_id": {"transcribe": 259, "translate": 260}})";
    const SpecialTokens special = find_special_tokens(bpe, generation, 300, "m");
    EXPECT_EQ(special.eot, 256);
    EXPECT_EQ(special.timestamp_begin, 263);
    EXPECT_EQ(special.languages.at("en"), 258);
    EXPECT_THROW(find_special_tokens(bpe, "{}", 300, "m"), Error);
    EXPECT_THROW(find_special_tokens(bpe, "[", 300, "m"), Error);
    // An id beyond the model's vocabulary is refused, not used.
    EXPECT_THROW(find_special_tokens(bpe, generation, 262, "m"), Error);
}

TEST(Tokenizer, AnUnknownLanguageListsTheKnown) {
    const Tokenizer tokenizer(test::whisper_demo(), 5448);
    try {
        tokenizer.sot_sequence("klingon", Task::transcribe);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("de"), std::string::npos);
    }
}

struct Vocabulary {
    const char* file;
    const char* golden;
    const char* column;
};

class Official : public testing::TestWithParam<Vocabulary> {};

TEST_P(Official, IdsAndSuppressionsEqualReference) {
    const std::filesystem::path file =
        test::source_dir().parent_path() / "shared/data" / GetParam().file;
    if (!std::filesystem::exists(file))
        GTEST_SKIP() << "the official vocabulary " << GetParam().file << " is not at hand";
    const json all = test::golden("official_shapes.json");
    const json& expected = all["tokenizers"][GetParam().golden];
    Bpe bpe = Bpe::from_tiktoken(file);
    for (const auto& [content, id] : expected["special_tokens"].items())
        bpe.add_special(content, id.get<int32_t>());
    const int64_t n_vocab = expected["n_vocab"];
    const Tokenizer tokenizer(bpe, find_special_tokens(bpe, "", n_vocab, file.string()));
    EXPECT_EQ(tokenizer.special().eot, expected["eot"].get<int32_t>());
    EXPECT_EQ(tokenizer.special().timestamp_begin, expected["timestamp_begin"].get<int32_t>());
    EXPECT_EQ(tokenizer.non_speech_tokens(), expected["non_speech"].get<std::vector<int32_t>>());
    const size_t column = GetParam().column == std::string("gpt2") ? 1 : 2;
    for (const json& entry : all["encoded"])
        EXPECT_EQ(tokenizer.encode(entry[0].get<std::string>()),
                  entry[column].get<std::vector<int32_t>>())
            << entry[0];
}

TEST_P(Official, SpecialTokensStandBehindTheRanks) {
    const std::filesystem::path file =
        test::source_dir().parent_path() / "shared/data" / GetParam().file;
    if (!std::filesystem::exists(file))
        GTEST_SKIP() << "the official vocabulary " << GetParam().file << " is not at hand";
    const json all = test::golden("official_shapes.json");
    const json& expected = all["tokenizers"][GetParam().golden];
    const int64_t n_vocab = expected["n_vocab"];
    const Tokenizer tokenizer = load_vocabulary(file, n_vocab);
    for (const auto& [content, id] : expected["special_tokens"].items())
        EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{id.get<int32_t>()}), content);
    EXPECT_EQ(tokenizer.special().timestamp_begin, expected["timestamp_begin"].get<int32_t>());
    EXPECT_EQ(tokenizer.special().multilingual, n_vocab != kEnglishVocab);
    EXPECT_EQ(tokenizer.special().languages.size(),
              n_vocab == kEnglishVocab ? 0u : static_cast<size_t>(n_vocab - 51766));
    EXPECT_EQ(tokenizer.non_speech_tokens(), expected["non_speech"].get<std::vector<int32_t>>());
}

TEST(OfficialTokenizer, RefusesRanksOfAnotherSize) {
    const Bpe bytes = Bpe::parse_tiktoken(test::byte_vocabulary(), "ranks");
    EXPECT_EQ(official_tokenizer(bytes, 256 + 1509 + 100, "v").special().languages.at("yue"), 357);
    EXPECT_EQ(official_tokenizer(bytes, 256 + 1509 + 1, "v").special().languages.size(), 1u);
    EXPECT_EQ(official_tokenizer(bytes, 256 + 1509 + 1, "v").special().timestamp_begin, 265);
    for (const int64_t n_vocab : {0, 256, 256 + 1509, 256 + 1509 + 101, 51865})
        EXPECT_THROW(official_tokenizer(bytes, n_vocab, "v"), Error) << n_vocab;
    test::TemporaryDirectory directory;
    test::write_text(directory.path() / "x.tiktoken", test::byte_vocabulary());
    try {
        load_vocabulary(directory.path() / "x.tiktoken", 51865);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("x.tiktoken: a vocabulary of 256 tokens"),
                  std::string::npos)
            << error.what();
    }
}

TEST(Vocabulary, IsADirectoryOrATokenizerJson) {
    const SpecialTokens expected = Tokenizer(test::whisper_demo(), 5448).special();
    EXPECT_EQ(load_vocabulary(test::whisper_demo(), 5448).special().languages, expected.languages);
    EXPECT_EQ(load_vocabulary(test::whisper_demo() / "tokenizer.json", 5448).special().languages,
              expected.languages);
    EXPECT_THROW(load_vocabulary(test::whisper_demo() / "tokenizer.json", 5447), Error);
    EXPECT_THROW(load_vocabulary(test::whisper_demo() / "none", 5448), Error);
}

INSTANTIATE_TEST_SUITE_P(
    Vocabularies, Official,
    testing::Values(Vocabulary{"gpt2.tiktoken", "gpt2", "gpt2"},
                    Vocabulary{"multilingual.tiktoken", "multilingual_99", "multilingual"},
                    Vocabulary{"multilingual.tiktoken", "multilingual_100", "multilingual"}),
    [](const auto& info) { return std::string(info.param.golden); });

}  // namespace
}  // namespace hark::whisper
