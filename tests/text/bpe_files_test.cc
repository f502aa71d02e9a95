// The readers of tokenizer files: what they accept, and what they say of what they refuse.
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "core/json/json.h"
#include "support/expect.h"
#include "support/process.h"
#include "text/bpe.h"
#include "text/utf8.h"

using namespace hark;
using nlohmann::json;
using test::expect_contains;

namespace {

// A vocabulary of the 256 bytes, "he" and "hel", with what it takes to merge them.
json small_tokenizer() {
    json vocab;
    int32_t next = 0;
    char32_t beyond = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
        std::string spelling;
        const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
        append_code_point(spelling, printable ? byte : beyond++);
        vocab[spelling] = next++;
    }
    vocab["he"] = 256;
    vocab["hel"] = 257;
    return {{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"h e", "he l"}}}},
            {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
            {"added_tokens", {{{"id", 258}, {"content", "<|end|>"}, {"special", true}}}}};
}

std::string message_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

std::string message_of_json(const json& root) {
    return message_of([&] { Bpe::parse_tokenizer_json(root.dump(), "T"); });
}

std::string base64(const std::string& bytes) {
    static const char* const digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; ++j)
            bits = bits << 8 | (i + j < bytes.size() ? uint8_t(bytes[i + j]) : 0);
        for (size_t j = 0; j < 4; ++j)
            text += i + j <= bytes.size() ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    return text.empty() ? "=" : text;
}

std::string small_ranks() {
    std::string text;
    for (int byte = 0; byte < 256; ++byte)
        text += base64(std::string(1, static_cast<char>(byte))) + " " + std::to_string(byte) + "\n";
    return text + base64("he") + " 256\n" + base64("hel") + " 257\n" + base64("") + " 258\n";
}

}  // namespace

TEST(TokenizerJson, SmallVocabulary) {
    const Bpe bpe = Bpe::parse_tokenizer_json(small_tokenizer().dump(), "T");
    EXPECT_EQ(bpe.vocab_size(), 259);
    EXPECT_EQ(bpe.encode("hello he"), (std::vector<int32_t>{257, 'l', 'o', ' ', 256}));
    EXPECT_EQ(bpe.special("<|end|>"), 258);
}

TEST(TokenizerJson, MergesAsPairs) {
    json root = small_tokenizer();
    root["model"]["merges"] = json::array({json::array({"h", "e"}), json::array({"he", "l"})});
    EXPECT_EQ(Bpe::parse_tokenizer_json(root.dump(), "T").encode("hel"), std::vector<int32_t>{257});
}

TEST(TokenizerJson, WholeWordsFirstWhereMergesAreIgnored) {
    json root = small_tokenizer();
    root["model"]["merges"] = json::array();
    EXPECT_EQ(Bpe::parse_tokenizer_json(root.dump(), "T").encode("he").size(), 2u);
    root["model"]["ignore_merges"] = true;
    EXPECT_EQ(Bpe::parse_tokenizer_json(root.dump(), "T").encode("he"), std::vector<int32_t>{256});
}

TEST(TokenizerJson, PrefixSpace) {
    json root = small_tokenizer();
    root["pre_tokenizer"]["add_prefix_space"] = true;
    const Bpe bpe = Bpe::parse_tokenizer_json(root.dump(), "T");
    EXPECT_EQ(bpe.encode("he"), (std::vector<int32_t>{' ', 256}));
    EXPECT_EQ(bpe.encode(" he"), (std::vector<int32_t>{' ', 256}));
}

TEST(TokenizerJson, AddedTokensThatAreNotSpecialKeepTheirText) {
    json root = small_tokenizer();
    root["added_tokens"].push_back({{"id", 259}, {"content", "<indent>"}, {"special", false}});
    const Bpe bpe = Bpe::parse_tokenizer_json(root.dump(), "T");
    const int32_t ids[] = {259, 258};
    EXPECT_EQ(bpe.decode(ids), "<indent>");
    EXPECT_EQ(bpe.special("<indent>"), 259);
}

TEST(TokenizerJson, SaysWhatIsWrong) {
    expect_contains(message_of([] { Bpe::parse_tokenizer_json("{", "T"); }),
                    "T: expected a JSON object, found text that is not JSON");
    expect_contains(message_of_json(json::array()), "found array");
    expect_contains(message_of_json(json::object()), "T: expected an object named model");
    const auto broken = [](const std::function<void(json&)>& change) {
        json root = small_tokenizer();
        change(root);
        return message_of_json(root);
    };
    expect_contains(broken([](json& r) { r["model"]["type"] = "Unigram"; }), "found Unigram");
    expect_contains(broken([](json& r) { r["normalizer"] = {{"type", "NFC"}}; }), "normalizer");
    expect_contains(broken([](json& r) { r["pre_tokenizer"]["type"] = "Metaspace"; }),
                    "found Metaspace");
    expect_contains(broken([](json& r) { r["pre_tokenizer"] = nullptr; }), "found null");
    expect_contains(broken([](json& r) { r["model"]["vocab"].erase("A"); }), "byte 65");
    expect_contains(broken([](json& r) { r["model"]["vocab"]["B"] = 'A'; }), "two tokens");
    expect_contains(broken([](json& r) { r["model"]["vocab"]["x y"] = -1; }), "found -1");
    expect_contains(broken([](json& r) { r["model"]["vocab"]["x y"] = "1"; }), "found string");
    expect_contains(broken([](json& r) { r["model"]["vocab"]["x y"] = 2000000000; }),
                    "out of range");
    expect_contains(broken([](json& r) { r["model"]["vocab"]["x y"] = 1e300; }), "expected an id");
    expect_contains(broken([](json& r) { r["model"]["merges"].push_back("q z"); }),
                    "T: merge 2: a merge needs the token 'qz'");
    expect_contains(broken([](json& r) { r["model"]["merges"].push_back("a b c"); }), "merge 2");
    expect_contains(broken([](json& r) { r["model"]["merges"].push_back(3); }), "found number");
    expect_contains(broken([](json& r) { r["added_tokens"][0]["id"] = 65; }), "'<|end|>'");
    expect_contains(broken([](json& r) { r["added_tokens"][0].erase("id"); }), "an id");
}

TEST(VocabJson, FindsSpecialTokensInEveryPlace) {
    const json root = small_tokenizer();
    json vocab = root["model"]["vocab"];
    vocab["<|here|>"] = 258;
    vocab["[PAD]"] = 259;
    const test::TemporaryDirectory directory;
    const auto write = [&](const char* name, const std::string& text) {
        test::write_text(directory.path() / name, text);
    };
    write("vocab.json", vocab.dump());
    write("merges.txt", "#version: 0.2\nh e\nhe l\n");
    write("added_tokens.json", R"({"<|added|>": 260})");
    write("tokenizer_config.json",
          R"({"added_tokens_decoder": {"261": {"content": "<|config|>", "special": true}}})");
    write("special_tokens_map.json",
          R"({"bos_token": "<|here|>", "pad_token": {"content": "[PAD]"},
              "additional_special_tokens": ["<|nowhere|>"]})");
    const Bpe bpe = Bpe::from_directory(directory.path());
    EXPECT_EQ(bpe.encode("hel"), std::vector<int32_t>{257});
    EXPECT_EQ(bpe.special("<|here|>"), 258);
    EXPECT_EQ(bpe.special("[PAD]"), 259);
    EXPECT_EQ(bpe.special("<|added|>"), 260);
    EXPECT_EQ(bpe.special("<|config|>"), 261);
    EXPECT_EQ(bpe.special("<|nowhere|>"), std::nullopt);
    EXPECT_EQ(bpe.vocab_size(), 262);

    write("merges.txt", "#version: 0.2\nh e\nhello\n");
    expect_contains(message_of([&] { Bpe::from_directory(directory.path()); }),
                    "merges.txt: line 3: expected two tokens");
    write("added_tokens.json", R"({"<|added|>": "x"})");
    write("merges.txt", "");
    expect_contains(message_of([&] { Bpe::from_directory(directory.path()); }),
                    "added_tokens.json: token '<|added|>': expected an id");
    std::filesystem::remove(directory.path() / "merges.txt");
    expect_contains(message_of([&] { Bpe::from_directory(directory.path()); }),
                    "expected tokenizer.json, or vocab.json and merges.txt");
}

TEST(Tiktoken, SmallRankFile) {
    Bpe bpe = Bpe::parse_tiktoken(small_ranks(), "R");
    EXPECT_EQ(bpe.vocab_size(), 259);
    EXPECT_EQ(bpe.bytes_of(258), "");
    EXPECT_EQ(bpe.encode("hello he"), (std::vector<int32_t>{257, 'l', 'o', ' ', 256}));
    EXPECT_TRUE(bpe.specials().empty());
    bpe.add_special("<|end|>", 259);
    EXPECT_EQ(bpe.special("<|end|>"), 259);
    EXPECT_EQ(bpe.vocab_size(), 260);
    EXPECT_THROW(bpe.add_special("<|end|>", 261), Error);
    EXPECT_THROW(bpe.add_special("<|other|>", 65), Error);
}

TEST(Tiktoken, SaysWhatIsWrong) {
    const auto message = [](const std::string& more) {
        return message_of([&] { Bpe::parse_tiktoken(small_ranks() + more, "R"); });
    };
    expect_contains(message("QUJD"), "R: line 260: expected a token in base64");
    expect_contains(message("QU*D 300"), "found the byte 42");
    expect_contains(message("QUJD -1"), "expected a rank, found '-1'");
    expect_contains(message("QUJD 999999999"), "out of range");
    expect_contains(message("QUJD 65"), "two tokens have the rank 65");
    expect_contains(message("QQ== 300"), "the token is there already");
    expect_contains(message(base64(std::string(513, 'a')) + " 300"), "at most 512 bytes");
    expect_contains(message_of([] { Bpe::parse_tiktoken("QQ== 0\n", "R"); }), "byte 0");
}
