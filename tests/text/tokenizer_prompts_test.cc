// Prompts of trusted and other pieces, tokens that come one by one, and sentencepiece's models
// against the installed library.
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <random>

#include "core/json/json.h"
#include "support/process.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

using namespace hark;
using nlohmann::json;
using Ids = std::vector<int32_t>;

namespace {

std::filesystem::path golden_file(const std::string& name) {
    return test::source_dir() / "tests/golden/model_tokenizers" / name;
}

Tokenizer family(const std::string& name) {
    const json golden = json::parse(test::read_text(golden_file(name + ".json")));
    return Tokenizer::parse_json(golden["tokenizer"].dump(), golden["config"].dump(), name);
}

int64_t count(const Ids& ids, std::optional<int32_t> id) {
    return std::count(ids.begin(), ids.end(), id.value());
}

}  // namespace

TEST(Prompts, SpecialTokensCountInTrustedPiecesAlone) {
    for (const char* name : {"qwen2", "smollm2", "phi4", "olmo2", "granite"}) {
        const Tokenizer tokenizer = family(name);
        std::string special;
        for (int32_t id = 0; id < tokenizer.vocab_size() && special.empty(); ++id)
            if (tokenizer.is_special(id)) special = tokenizer.token(id);
        const auto id = tokenizer.id_of(special);
        const std::vector<PromptPiece> pieces = {
            {special, true}, {"user says " + special, false}, {special + "x", true}};
        const Ids ids = tokenizer.encode(pieces, false);
        EXPECT_EQ(count(ids, id), 2) << name;
        // A token that the border of two pieces makes is text.
        const std::vector<PromptPiece> cut = {{special.substr(0, 3), true},
                                              {special.substr(3), false}};
        EXPECT_EQ(count(tokenizer.encode(cut, false), id), 0) << name;
        const std::vector<PromptPiece> joined = {{special.substr(0, 3), true},
                                                 {special.substr(3), true}};
        EXPECT_EQ(tokenizer.encode(joined, false), Ids{*id}) << name;
    }
}

// Words are cut as if the pieces were one text.
TEST(Prompts, PiecesAreOneText) {
    for (const char* name :
         {"llama3", "gpt_oss", "llama2", "mistral", "gemma", "deepseek", "deepseek_llm"}) {
        const Tokenizer tokenizer = family(name);
        const std::string text = "The little house by the sea, 1984.";
        for (size_t at = 0; at <= text.size(); ++at) {
            const std::vector<PromptPiece> pieces = {{text.substr(0, at), true},
                                                     {text.substr(at), false}};
            EXPECT_EQ(tokenizer.encode(pieces, true),
                      tokenizer.encode(text, {.add_specials = true}))
                << name;
        }
    }
}

TEST(Prompts, SpecialIdsOfFilesAndTheirTwins) {
    for (const char* name :
         {"llama3", "qwen2", "gpt_oss", "llama2", "gemma", "deepseek", "deepseek_llm", "tekken"}) {
        const Tokenizer tokenizer = family(name);
        const auto twin = Tokenizer::load(golden_file(std::string(name) + ".gguf"));
        const auto& special = tokenizer.special_ids();
        EXPECT_EQ(special.bos, twin->special_ids().bos) << name;
        EXPECT_EQ(special.eos, twin->special_ids().eos) << name;
        EXPECT_EQ(special.add_bos, twin->special_ids().add_bos) << name;
        EXPECT_TRUE(special.eos.has_value()) << name;
        EXPECT_EQ(tokenizer.end_of_text(), twin->end_of_text()) << name;
        EXPECT_EQ(count(twin->special_ids().ends, special.eos), 1) << name;
        for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
            ASSERT_EQ(tokenizer.has(id), twin->has(id)) << name << id;
            if (tokenizer.has(id)) {
                ASSERT_EQ(tokenizer.is_special(id), twin->is_special(id)) << name << id;
            }
        }
    }
    EXPECT_EQ(family("qwen2").id_of("<|im_end|>"), family("qwen2").special_ids().eos);
    EXPECT_EQ(family("qwen2").id_of("no token"), std::nullopt);
}

// What has come is never taken back, and whole characters do not wait for the next token.
TEST(Prompts, StreamsGiveTextAsSoonAsItIsCertain) {
    const std::string text = " caf\xC3\xA9 \xF0\x9F\x98\x80 the end";
    for (const char* name : {"llama3", "llama2", "gemma", "mistral"}) {
        const Tokenizer tokenizer = family(name);
        const Ids ids = tokenizer.encode(text);
        const auto decoder = tokenizer.decoder(false);
        std::string streamed;
        for (size_t i = 0; i < ids.size(); ++i) {
            streamed += decoder->push(std::span(&ids[i], 1));
            EXPECT_TRUE(text.find(streamed) != text.npos || !is_valid_utf8(streamed)) << name;
        }
        const size_t before = streamed.size();
        streamed += decoder->finish();
        EXPECT_EQ(before, streamed.size()) << name;
        EXPECT_EQ(streamed, tokenizer.decode(ids)) << name;
    }
}

TEST(Sentencepiece, RandomTextsEqualTheLibrary) {
    const std::vector<std::string> parts = {" ",
                                            "  ",
                                            "\n",
                                            "\n\n",
                                            "\t",
                                            "a",
                                            "the",
                                            "Model",
                                            "\xC3\xA9",
                                            "e\xCC\x81",
                                            "\xEF\xAC\x81",
                                            "\xE2\x96\x81",
                                            "\xE3\x81\x93\xE3\x82\x93",
                                            "\xF0\x9F\x98\x80",
                                            "12",
                                            "<table>",
                                            "ing",
                                            "\xEF\xBC\xA1",
                                            ".",
                                            "</s>",
                                            "\xE3\x80\x80"};
    for (const char* name : {"llama2", "gemma", "unigram"}) {
        sentencepiece::SentencePieceProcessor library;
        ASSERT_TRUE(library.Load(golden_file(std::string(name) + ".model").string()).ok());
        const auto tokenizer = Tokenizer::load(golden_file(std::string(name) + ".model"));
        std::mt19937 random(11);
        for (int i = 0; i < 3000; ++i) {
            std::string text;
            for (size_t n = random() % 30; n > 0; --n) text += parts[random() % parts.size()];
            std::vector<int> wanted;
            ASSERT_TRUE(library.Encode(text, &wanted).ok());
            ASSERT_EQ(tokenizer->encode(text), wanted) << name << ": " << text;
            std::string decoded;
            ASSERT_TRUE(library.Decode(wanted, &decoded).ok());
            ASSERT_EQ(tokenizer->decode(wanted), decoded) << name << ": " << text;
        }
    }
}
