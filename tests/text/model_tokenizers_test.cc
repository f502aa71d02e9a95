// Tokenizers of every family of models against the libraries that trained them
// (tests/golden/model_tokenizers.py).
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json/json.h"
#include "support/fnv.h"
#include "support/generated_text.h"
#include "support/process.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

using namespace hark;
using nlohmann::json;
using Ids = std::vector<int32_t>;

namespace {

// The folder of the golden files; that of a longer run instead, if HARK_TOKENIZER_GOLDEN names one.
std::filesystem::path folder() {
    const char* other = std::getenv("HARK_TOKENIZER_GOLDEN");
    return other ? other : test::source_dir() / "tests/golden/model_tokenizers";
}

json read_json(const std::string& name) { return json::parse(test::read_text(folder() / name)); }

const json& common() {
    static const json kCommon = read_json("common.json");
    return kCommon;
}

const std::string& long_text() {
    static const std::string kText =
        test::generated_text(common()["pieces"], common()["seed"], common()["bytes"]);
    return kText;
}

std::vector<std::string> names(bool with_gguf) {
    std::vector<std::string> names;
    for (const json& family : common()["families"])
        if (!with_gguf || family["gguf"]) names.push_back(family["name"]);
    return names;
}

Tokenizer from_golden(const json& golden, const std::string& name) {
    return Tokenizer::parse_json(golden["tokenizer"].dump(), golden["config"].dump(), name);
}

// The ids of texts, of which the first few that differ are shown.
void expect_ids(const Tokenizer& tokenizer, const json& texts, const json& wanted,
                const EncodeOptions& options, const std::string& name) {
    ASSERT_EQ(texts.size(), wanted.size());
    const auto encoder = tokenizer.encoder();
    int shown = 0;
    for (size_t i = 0; i < texts.size() && shown < 3; ++i) {
        Ids ids;
        encoder->encode(texts[i].get<std::string>(), ids, options);
        EXPECT_EQ(ids, wanted[i].get<Ids>()) << name << ": " << texts[i];
        shown += ids != wanted[i].get<Ids>();
    }
}

void expect_long_text(const Tokenizer& tokenizer, const json& wanted, const std::string& name) {
    ASSERT_EQ(test::fnv1a(long_text()), common()["text_hash"].get<std::string>())
        << "the generators differ";
    const Ids ids = tokenizer.encode(long_text());
    EXPECT_EQ(ids.size(), wanted["count"].get<size_t>()) << name;
    EXPECT_EQ(test::fnv1a({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]}),
              wanted["hash"].get<std::string>())
        << name;
}

void expect_encoding(const Tokenizer& tokenizer, const json& golden, const std::string& name) {
    expect_ids(tokenizer, common()["texts"], golden["plain"], {}, name);
    expect_ids(tokenizer, golden["own_texts"], golden["parsed"], {.parse_specials = true}, name);
    expect_ids(tokenizer, golden["own_texts"], golden["as_text"], {}, name);
    expect_long_text(tokenizer, golden["long"], name);
    EXPECT_EQ(tokenizer.encode("a text", {.parse_specials = true, .add_specials = true}),
              golden["around"].get<Ids>())
        << name;
}

// Where a text has U+2581 itself next to spaces, sentencepiece and tokenizers differ in runs of
// them: GGUF's reader does what the former does.
void follow_sentencepiece(json& golden) {
    const json texts = golden["own_texts"], parsed = golden["parsed"], as_text = golden["as_text"];
    for (const char* key : {"own_texts", "parsed", "as_text"}) golden[key] = json::array();
    for (size_t i = 0; i < texts.size(); ++i) {
        if (texts[i].get<std::string>().find("\xE2\x96\x81") != std::string::npos) continue;
        golden["own_texts"].push_back(texts[i]);
        golden["parsed"].push_back(parsed[i]);
        golden["as_text"].push_back(as_text[i]);
    }
    EXPECT_GT(golden["own_texts"].size(), 5u);
    golden["long"] = common()["sentencepiece"]["gemma"]["long"];
}

// One id at a time, as a model gives them.
std::string streamed(const Tokenizer& tokenizer, const Ids& ids, bool with_specials) {
    const auto decoder = tokenizer.decoder(with_specials);
    std::string text;
    for (const int32_t id : ids) text += decoder->push(std::span(&id, 1));
    return text + decoder->finish();
}

}  // namespace

TEST(ModelTokenizers, EqualTheTokenizersLibrary) {
    for (const std::string& name : names(false)) {
        const json golden = read_json(name + ".json");
        const Tokenizer tokenizer = from_golden(golden, name);
        EXPECT_EQ(tokenizer.vocab_size(), golden["vocab_size"]) << name;
        expect_encoding(tokenizer, golden, name);
    }
}

TEST(ModelTokenizers, DecodingEqualsTheTokenizersLibrary) {
    for (const std::string& name : names(false)) {
        const json golden = read_json(name + ".json");
        const Tokenizer tokenizer = from_golden(golden, name);
        for (const json& one : golden["decoded"]) {
            const Ids ids = one[0];
            EXPECT_EQ(tokenizer.decode(ids), one[1].get<std::string>()) << name << ": " << one[0];
            EXPECT_EQ(tokenizer.decode(ids, true), one[2].get<std::string>()) << name;
            EXPECT_EQ(replace_invalid(streamed(tokenizer, ids, false)), one[1].get<std::string>())
                << name;
        }
    }
}

// Bytes of tokens, one by one, are those of the text: bytes that fall back and spaces too.
TEST(ModelTokenizers, TokensHaveTheirBytes) {
    const std::string text = "A king: na\xC3\xAFve \xF0\x9F\x90\xB3 \xE1\x9A\xA0 <0x0A>\n two";
    for (const std::string name : {"llama2", "gemma", "qwen2", "tekken", "llama3"}) {
        const Tokenizer tokenizer = from_golden(read_json(name + ".json"), name);
        std::string bytes;
        for (const int32_t id : tokenizer.encode(text)) bytes += tokenizer.bytes_of(id);
        // A space that the tokenizer puts before a text is the first token's.
        EXPECT_EQ(bytes, name == "llama2" ? " " + text : text) << name;
        EXPECT_THROW(tokenizer.bytes_of(tokenizer.vocab_size()), Error);
    }
}

TEST(ModelTokenizers, GgufTwinsHaveTheSameIds) {
    for (const std::string& name : names(true)) {
        json golden = read_json(name + ".json");
        const auto tokenizer = Tokenizer::load(folder() / (name + ".gguf"));
        EXPECT_EQ(tokenizer->vocab_size(), golden["vocab_size"]) << name;
        if (name == "gemma") follow_sentencepiece(golden);
        expect_encoding(*tokenizer, golden, name);
    }
}

TEST(ModelTokenizers, SentencepieceModelsEqualTheLibrary) {
    for (const auto& [name, golden] : common()["sentencepiece"].items()) {
        const auto tokenizer = Tokenizer::load(folder() / (name + ".model"));
        expect_ids(*tokenizer, common()["texts"], golden["plain"], {}, name);
        // Of a long text the sums of single precision tell by their rounding which of two equal
        // ways is taken; versions of the library differ in it.
        if (name != "unigram" || common()["bytes"] <= 100'000)
            expect_long_text(*tokenizer, golden["long"], name);
        for (size_t i = 0; i < golden["plain"].size(); ++i)
            EXPECT_EQ(tokenizer->decode(golden["plain"][i].get<Ids>()),
                      golden["decoded"][i].get<std::string>())
                << name;
    }
}
