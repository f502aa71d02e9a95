// What is said of tokenizers that are broken or not supported: one clear message that names the
// file and the part.
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "core/json/json.h"
#include "support/error_of.h"
#include "support/gguf_writer.h"
#include "support/process.h"
#include "text/tokenizer.h"
#include "text/tokenizer/pattern.h"

using namespace hark;
using nlohmann::json;
using test::error_of;
using test::GgufWriter;

namespace {

json small() {
    return {{"model",
             {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}}, {"merges", {"a b"}}}},
            {"added_tokens", {{{"id", 3}, {"content", "<s>"}, {"special", true}}}}};
}

// The message about small() after a change.
std::string message_after(const std::function<void(json&)>& change,
                          const std::string& config = "") {
    json root = small();
    change(root);
    return error_of([&] { Tokenizer::parse_json(root.dump(), config, "T"); });
}

void expect_message(const std::string& found, const std::string& part) {
    EXPECT_EQ(found.rfind("T: ", 0), 0u) << found;
    EXPECT_NE(found.find(part), std::string::npos) << found;
}

class GgufTokenizer : public testing::Test {
  protected:
    std::string message(const std::function<void(GgufWriter&)>& write) {
        GgufWriter file;
        write(file);
        const auto path = directory_.path() / "x.gguf";
        test::write_text(path, file.bytes());
        return error_of([&] { Tokenizer::load(path); });
    }
    static void tokens(GgufWriter& file, const std::string& kind, const std::string& pre) {
        file.text("tokenizer.ggml.model", kind);
        file.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<s>"});
        if (!pre.empty()) file.text("tokenizer.ggml.pre", pre);
        file.texts("tokenizer.ggml.merges", {"a b"});
    }

  private:
    test::TemporaryDirectory directory_;
};

}  // namespace

TEST(TokenizerErrors, PartsThatAreNotSupportedAreNamed) {
    EXPECT_EQ(message_after([](json&) {}), "none");
    const auto part = [](const char* key, const char* type) {
        return message_after([&](json& root) { root[key] = {{"type", type}}; });
    };
    expect_message(part("normalizer", "BertNormalizer"), "the normalizer 'BertNormalizer' is not");
    expect_message(part("pre_tokenizer", "Whitespace"), "the pre-tokenizer 'Whitespace' is not");
    expect_message(part("decoder", "WordPiece"), "the decoder 'WordPiece' is not supported");
    expect_message(part("post_processor", "BertProcessing"), "the post-processor 'BertProcessing'");
    expect_message(message_after([](json& root) { root["model"]["type"] = "WordLevel"; }),
                   "the model 'WordLevel' is not supported");
    expect_message(message_after([](json& root) { root["model"]["dropout"] = 0.1; }),
                   "dropout is not");
    expect_message(message_after([](json& root) { root["model"]["end_of_word_suffix"] = "</w>"; }),
                   "end_of_word_suffix is not supported: expected none, found \"</w>\"");
    expect_message(message_after([](json& root) {
                       root["pre_tokenizer"] = {
                           {"type", "Sequence"},
                           {"pretokenizers", {{{"type", "ByteLevel"}}, {{"type", "Digits"}}}}};
                   }),
                   "'Digits' after ByteLevel");
    expect_message(message_after([](json& root) {
                       root["decoder"] = {
                           {"type", "Sequence"},
                           {"decoders", {{{"type", "Fuse"}}, {{"type", "ByteFallback"}}}}};
                   }),
                   "the decoder ByteFallback is not supported at this place");
}

TEST(TokenizerErrors, BrokenValuesAreNamed) {
    expect_message(message_after([](json& root) { root["model"]["vocab"]["x"] = -1; }),
                   "token 'x'");
    expect_message(message_after([](json& root) { root["model"]["vocab"]["x"] = 1; }),
                   "two tokens have the id 1");
    expect_message(message_after([](json& root) { root["model"]["vocab"]["x"] = 2'000'000'000; }),
                   "the id 2000000000 is out of range for 5 tokens");
    expect_message(message_after([](json& root) { root["model"]["merges"] = {"a x"}; }),
                   "merge 0: a merge needs the token 'x'");
    expect_message(message_after([](json& root) { root["model"]["merges"] = {{"a"}}; }),
                   "merge 0: expected two tokens");
    expect_message(message_after([](json& root) { root["added_tokens"][0]["id"] = 1; }),
                   "the added token '<s>' has the id 1");
    expect_message(message_after([](json& root) { root["added_tokens"][0]["lstrip"] = 1; }),
                   "lstrip: expected true");
    expect_message(message_after([](json& root) {
                       root["post_processor"] = {{"type", "TemplateProcessing"},
                                                 {"single", {{{"SpecialToken", {{"id", "<s>"}}}}}}};
                   }),
                   "needs the special token '<s>', which special_tokens lacks");
    expect_message(message_after([](json& root) { root["model"] = 3; }),
                   "expected an object named model");
    expect_message(message_after([](json&) {}, "[]"), "expected a JSON object, found array");
    expect_message(message_after([](json& root) {
                       root["model"] = {{"type", "Unigram"},
                                        {"vocab", json::array({json::array({"a", "b"})})}};
                   }),
                   "piece 0: expected a text and a score");
}

TEST(TokenizerErrors, PatternsThatPcreReadsInAnotherWayAreNamed) {
    const auto said = [](const std::string& pattern) {
        return error_of([&] { Pattern::regex(pattern, "T"); });
    };
    for (const char* pattern :
         {"\\w+", "\\h", "a{1,2}+", "[a[bc]]", "[a&&b]", "(?m)a", "(a)\\1", "\\u12", "a\\"})
        expect_message(said(pattern), "is not supported in the pattern '");
    expect_message(said("("), "does not compile");
    EXPECT_EQ(said("[]a]\\p{Lu}{2}\\x{41}\\u0041(?i:x)(?=y)"), "none");
}

// A pattern that takes exponential time ends with a message instead.
TEST(TokenizerErrors, PatternsThatTakeTooLong) {
    const Pattern pattern = Pattern::regex("(?:a|aa)*(?:a|aa)*(?:a|aa)*(?=b|c)", "T");
    const std::string text(5000, 'a');
    const std::string said = error_of([&] { Pattern::Search(pattern, text).next(); });
    EXPECT_NE(said.find("fails after byte 0"), std::string::npos) << said;
}

TEST_F(GgufTokenizer, BrokenKeysAreNamed) {
    EXPECT_EQ(message([](GgufWriter& file) { tokens(file, "gpt2", "llama-bpe"); }), "none");
    EXPECT_NE(message([](GgufWriter& file) {
                  tokens(file, "gpt2", "new-split");
              }).find("the split 'new-split' is not supported: expected one of "),
              std::string::npos);
    EXPECT_NE(message([](GgufWriter& file) {
                  tokens(file, "bert", "");
              }).find("the tokenizer 'bert' is not supported: expected gpt2 or llama"),
              std::string::npos);
    EXPECT_NE(message([](GgufWriter& file) {
                  tokens(file, "llama", "");
              }).find("'tokenizer.ggml.scores', found none"),
              std::string::npos);
    EXPECT_NE(message([](GgufWriter& file) {
                  tokens(file, "gpt2", "qwen2");
                  file.u32("tokenizer.ggml.eos_token_id", 4);
              }).find("eos_token_id"),
              std::string::npos);
    EXPECT_NE(message([](GgufWriter& file) {
                  tokens(file, "gpt2", "qwen2");
                  file.i32s("tokenizer.ggml.token_type", {1});
              }).find("expected 4 types, one per token, found 1"),
              std::string::npos);
}
