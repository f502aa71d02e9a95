// Vocabularies in GGUF files and in llm.c's tokenizer.bin, against the same one as Hugging Face
// stores it, and what is said of broken ones.
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "core/json/json.h"
#include "formats/gguf.h"
#include "support/byte_vocabulary.h"
#include "support/gguf_vocabulary.h"
#include "support/golden.h"
#include "support/process.h"
#include "text/bpe.h"
#include "text/byte_alphabet.h"

using namespace hark;
using nlohmann::json;
using test::GgufWriter;

namespace {

const json& demo_tokenizer() {
    static const json kTokenizer =
        json::parse(test::read_text(test::gpt_demo() / "tokenizer.json"));
    return kTokenizer;
}

void expect_equal(const Bpe& found, const Bpe& expected) {
    ASSERT_EQ(found.vocab_size(), expected.vocab_size());
    EXPECT_EQ(found.specials(), expected.specials());
    for (int32_t id = 0; id < expected.vocab_size(); ++id) {
        ASSERT_EQ(found.bytes_of(id), expected.bytes_of(id)) << id;
        ASSERT_EQ(found.is_special(id), expected.is_special(id)) << id;
    }
    for (const std::string& text : {test::read_text(test::gpt_demo() / "merges.txt"),
                                    std::string("Größe 😀\t\n  x<|endoftext|>'ll")})
        EXPECT_EQ(found.encode(text), expected.encode(text));
}

std::string llmc_tokenizer(const std::vector<std::string>& tokens, uint32_t version, uint32_t end) {
    std::string bytes = GgufWriter::number<uint32_t>(20240328) + GgufWriter::number(version) +
                        GgufWriter::number(static_cast<uint32_t>(tokens.size())) +
                        GgufWriter::number(end);
    bytes.resize(1024);
    for (const std::string& token : tokens) bytes += static_cast<char>(token.size()) + token;
    return bytes;
}

std::vector<std::string> tokens_of(const Bpe& bpe) {
    std::vector<std::string> tokens;
    for (int32_t id = 0; id < bpe.vocab_size(); ++id) tokens.push_back(bpe.bytes_of(id));
    return tokens;
}

class BpeLoad : public testing::Test {
  protected:
    Bpe load(const std::string& bytes) {
        test::write_text(path(), bytes);
        return Bpe::load(path());
    }
    void expect_refused(const std::string& bytes, const std::string& part) {
        try {
            load(bytes);
            ADD_FAILURE() << "accepted; expected: " << part;
        } catch (const Error& error) {
            const std::string message = error.what();
            EXPECT_EQ(message.rfind(path().string() + ": ", 0), 0u) << message;
            EXPECT_NE(message.find(part), std::string::npos) << message;
        }
    }
    std::filesystem::path path() const { return directory_.path() / "x"; }

  private:
    test::TemporaryDirectory directory_;
};

}  // namespace

TEST_F(BpeLoad, EveryFileOfOneVocabularyIsTheSame) {
    const Bpe expected = Bpe::from_directory(test::gpt_demo());
    expect_equal(Bpe::load(test::gpt_demo()), expected);
    expect_equal(load(demo_tokenizer().dump()), expected);
    for (const size_t padding : {0, 7}) {
        GgufWriter file;
        test::add_vocabulary(file, demo_tokenizer(), 4096 + padding);
        expect_equal(load(file.bytes()), expected);
    }
    expect_equal(load(llmc_tokenizer(tokens_of(expected), 2, 4095)), expected);
}

TEST_F(BpeLoad, RankFilesHaveEndOfTextBehindTheirRanks) {
    EXPECT_EQ(load(test::byte_vocabulary()).special("<|endoftext|>"), 256);
}

// An older file says neither the pattern nor which tokens are special.
TEST_F(BpeLoad, GgufWithoutWhatIsOptional) {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte)
        tokens.push_back(spell_bytes(std::string(1, static_cast<char>(byte))));
    tokens.insert(tokens.end(), {"he", "<|endoftext|>"});
    const auto write = [&](bool prefix) {
        GgufWriter file;
        file.text("tokenizer.ggml.model", "gpt2");
        file.texts("tokenizer.ggml.tokens", tokens);
        file.texts("tokenizer.ggml.merges", {"h e"});
        file.key("tokenizer.ggml.add_space_prefix", 7, prefix ? "\x01" : std::string(1, '\0'));
        return load(file.bytes());
    };
    EXPECT_EQ(write(false).encode("he"), std::vector<int32_t>{256});
    EXPECT_EQ(write(true).encode("he"), (std::vector<int32_t>{' ', 256}));
    EXPECT_EQ(write(false).special("<|endoftext|>"), 257);
    EXPECT_EQ(write(false).decode(std::vector<int32_t>{257, 'a'}), "a");
}

TEST_F(BpeLoad, BrokenGgufIsNamed) {
    const auto changed = [](const std::string& without,
                            const std::function<void(GgufWriter&)>& add) {
        GgufWriter file;
        const auto unless = [&](const std::string& key, auto&& write) {
            if (key != without) write(key);
        };
        unless("tokenizer.ggml.model", [&](auto& key) { file.text(key, "gpt2"); });
        unless("tokenizer.ggml.tokens", [&](auto& key) { file.texts(key, {"a", "b", "ab"}); });
        unless("tokenizer.ggml.merges", [&](auto& key) { file.texts(key, {"a b"}); });
        add(file);
        return file.bytes();
    };
    const auto nothing = [](GgufWriter&) {};
    for (const char* key : {"tokenizer.ggml.model", "tokenizer.ggml.tokens"})
        expect_refused(changed(key, nothing), concat("expected the key '", key, "', found none"));
    expect_refused(changed("tokenizer.ggml.merges", nothing),
                   "'tokenizer.ggml.merges', found none");
    expect_refused(changed("", nothing), "expected a token for each of the 256 bytes");
    expect_refused(
        changed("tokenizer.ggml.model",
                [](auto& file) { file.text("tokenizer.ggml.model", "llama"); }),
        "key 'tokenizer.ggml.model': expected gpt2, byte-level BPE with GPT-2's pattern, "
        "found 'llama'");
    expect_refused(changed("", [](auto& file) { file.text("tokenizer.ggml.pre", "llama-bpe"); }),
                   "expected gpt-2, byte-level BPE with GPT-2's pattern, found 'llama-bpe'");
    expect_refused(changed("", [](auto& file) { file.i32s("tokenizer.ggml.token_type", {1}); }),
                   "expected 3 types, one a token, found 1");
    expect_refused(changed("tokenizer.ggml.merges",
                           [](auto& file) { file.texts("tokenizer.ggml.merges", {"ab"}); }),
                   "merge 0: expected two tokens and a space between them, found 'ab'");
    expect_refused(changed("tokenizer.ggml.merges",
                           [](auto& file) { file.texts("tokenizer.ggml.merges", {"a c"}); }),
                   "merge 0: a merge needs the token 'c'");
    expect_refused(changed("tokenizer.ggml.tokens",
                           [](auto& file) {
                               file.texts("tokenizer.ggml.tokens", {"a", "a"});
                           }),
                   "the token 'a' has the ids 0 and 1");
}

TEST_F(BpeLoad, BrokenLlmcTokenizersAreNamed) {
    std::vector<std::string> tokens = tokens_of(load(test::byte_vocabulary()));
    const std::string good = llmc_tokenizer(tokens, 2, 256);
    EXPECT_EQ(load(good).special("<|endoftext|>"), 256);
    expect_refused(good.substr(0, 1000), "expected a header of 1024 bytes, found 1000");
    expect_refused(good.substr(0, good.size() - 1), "found the file's end in token 256");
    expect_refused(good.substr(0, good.size() - 20), "found the file's end in token 253");
    expect_refused(good + "x", "expected 257 tokens in ");
    expect_refused(llmc_tokenizer(tokens, 3, 256), "expected version 1 or 2, found 3");
    expect_refused(llmc_tokenizer(tokens, 2, 257), "among 257 tokens, found 257");
    expect_refused(llmc_tokenizer(tokens, 1, 0), "among 257 tokens, found 50256");
    tokens[7] = "a";
    expect_refused(llmc_tokenizer(tokens, 2, 256), "token 97 is there twice");
}

TEST_F(BpeLoad, OtherFilesAreNamed) {
    expect_refused("nothing of the kind\n", "found none of them");
    expect_refused(GgufWriter::number<int32_t>(20240326) + std::string(2000, ' '),
                   "llm.c's models carry no tokenizer; give one with --tokenizer");
    EXPECT_THROW(Bpe::load(path() / "none"), Error);
}
