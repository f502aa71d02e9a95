// The kinds of tokenizers through one interface.
#include "text/tokenizer.h"

#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <random>

#include "core/error.h"
#include "support/byte_vocabulary.h"
#include "support/error_of.h"
#include "support/process.h"
#include "text/bpe.h"
#include "text/tokens/sentencepiece.h"
#include "text/tokens/tokenizer_training.h"

using namespace hark;
using test::error_of;

namespace {

std::vector<int32_t> encode(const Tokenizer& tokenizer, const std::string& text) {
    std::vector<int32_t> ids;
    tokenizer.encoder()->encode(text, ids, true);
    return ids;
}

std::string decode(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
    const auto decoder = tokenizer.decoder();
    std::string text = decoder->push(ids.first(ids.size() / 2));
    text += decoder->push(ids.subspan(ids.size() / 2));
    return text + decoder->finish();
}

std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& model, const std::string& where) {
    return std::make_unique<Tokenizer>(Tokenizer::parse_sentencepiece(model, where));
}

// A small model of a text of the repository.
std::string trained(const std::string& kind, int32_t size) {
    const std::string text = test::read_text(test::source_dir() / "README.md");
    size_t at = 0;
    return train_sentencepiece({kind, size}, [&]() -> std::optional<std::string> {
        while (at < text.size()) {
            const size_t end = std::min(text.find('\n', at), text.size());
            const std::string line = text.substr(at, end - at);
            at = end + 1;
            if (!line.empty()) return line;
        }
        return std::nullopt;
    });
}

// A model that normalises as most published ones do; its tables are 236 KB.
std::string normalizing_model() {
    class Lines : public sentencepiece::SentenceIterator {
      public:
        bool done() const override { return n_ > 60; }
        void Next() override {
            ++n_;
            line_ = "a line of text " + std::to_string(n_ * n_ * 7919);
        }
        const std::string& value() const override { return line_; }
        sentencepiece::util::Status status() const override { return {}; }

      private:
        int n_ = 0;
        std::string line_ = "a line";
    } lines;
    std::string model;
    const auto status = sentencepiece::SentencePieceTrainer::Train(
        {{"vocab_size", "40"}, {"hard_vocab_limit", "false"}, {"minloglevel", "2"}}, &lines,
        &model);
    EXPECT_TRUE(status.ok());
    return model;
}

const std::string kText = "  A transcript,\n\n with caf\xC3\xA9  \xF0\x9F\x98\x80 and tools. ";

}  // namespace

TEST(Tokenizer, ModelDirectoriesAndTheirFiles) {
    const auto directory = test::source_dir() / "models/gpt-demo";
    const auto whole = Tokenizer::load(directory);
    const auto file = Tokenizer::load(directory / "tokenizer.json");
    EXPECT_EQ(whole->vocab_size(), 4096);
    EXPECT_EQ(whole->end_of_text(), 4095);
    EXPECT_EQ(encode(*whole, kText), Bpe::from_directory(directory).encode(kText));
    EXPECT_EQ(encode(*file, kText), encode(*whole, kText));
    EXPECT_EQ(decode(*whole, encode(*whole, kText)), kText);
    EXPECT_EQ(decode(*whole, std::vector<int32_t>{4095}), "<|endoftext|>");
}

TEST(Tokenizer, RankFilesHaveTheEndOfTextBehindThem) {
    const test::TemporaryDirectory directory;
    const auto path = directory.path() / "ranks";
    test::write_text(path, test::byte_vocabulary());
    const auto tokenizer = Tokenizer::load(path);
    EXPECT_EQ(tokenizer->vocab_size(), 257);
    EXPECT_EQ(tokenizer->end_of_text(), 256);
    EXPECT_EQ(encode(*tokenizer, "hi"), (std::vector<int32_t>{'h', 'i'}));
}

// Their text is split by another pattern, which the file does not say.
TEST(Tokenizer, KnownRankFilesOfOtherPatternsAreRefused) {
    const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string ranks = test::byte_vocabulary();
    for (int i = 256; i < 100'256; ++i)
        ranks += std::string{digits[i >> 18 & 63], digits[i >> 12 & 63], digits[i >> 6 & 63],
                             digits[i & 63]} +
                 " " + std::to_string(i) + "\n";
    const test::TemporaryDirectory directory;
    test::write_text(directory.path() / "ranks", ranks);
    EXPECT_NE(error_of([&] { Tokenizer::load(directory.path() / "ranks"); }).find("cl100k_base"),
              std::string::npos);
}

TEST(Tokenizer, SentencepieceGivesTheTextBack) {
    for (const char* kind : {"unigram", "bpe"}) {
        const auto tokenizer = load_sentencepiece(trained(kind, 600), "M");
        EXPECT_EQ(tokenizer->vocab_size(), 600);
        EXPECT_EQ(tokenizer->end_of_text(), 2);  // </s>
        EXPECT_EQ(tokenizer->last_cut("one two"), 0u);
        const auto ids = encode(*tokenizer, kText);
        EXPECT_LT(ids.size(), kText.size());
        EXPECT_EQ(decode(*tokenizer, ids), kText);
        EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, "x\xFFy")), "x\xEF\xBF\xBDy");
        EXPECT_THROW(decode(*tokenizer, std::vector<int32_t>{1, 600}), Error);
        EXPECT_THROW(decode(*tokenizer, std::vector<int32_t>{1, -1}), Error);
    }
}

TEST(Tokenizer, SentencepieceTrainingIsDeterministicAndRefusesWhatItCannot) {
    EXPECT_EQ(trained("unigram", 500), trained("unigram", 500));
    EXPECT_NE(error_of([] { trained("unigram", 100); }).find("cannot train"), std::string::npos);
    EXPECT_NE(error_of([] { trained("unigram", 90'000); }).find("cannot train"), std::string::npos);
}

TEST(Tokenizer, NormalisingModelsNormalise) {
    const auto tokenizer = load_sentencepiece(normalizing_model(), "M");
    EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, "  \xEF\xBD\x81  line \xEF\xBC\x93")),
              "a line 3");
}

// The library follows the offsets in these tables unchecked.
TEST(Tokenizer, BrokenNormalisationTablesAreRefused) {
    const std::string model = normalizing_model();
    std::mt19937 random(5);
    int refused = 0;
    for (int i = 0; i < 200; ++i) {
        std::string broken = model;
        for (int k = 0; k < 20; ++k)
            broken[1000 + random() % (model.size() - 2000)] = static_cast<char>(random());
        refused += error_of([&] {
                       const auto tokenizer = load_sentencepiece(broken, "M");
                       encode(*tokenizer, "\xEF\xBC\xA1 e\xCC\x81 \xE3\x80\x80 \xEF\xAC\x81");
                   }) != "none";
    }
    EXPECT_GT(refused, 150);
    EXPECT_NE(
        error_of([&] { load_sentencepiece(model.substr(0, model.size() / 2), "M"); }).find("M: "),
        std::string::npos);
}

TEST(Tokenizer, AModelInADirectory) {
    const test::TemporaryDirectory directory;
    test::write_text(directory.path() / "spiece.model", trained("unigram", 500));
    EXPECT_EQ(Tokenizer::load(directory.path())->vocab_size(), 500);
}

TEST(Tokenizer, WhatIsNoneOfThemIsNamed) {
    const test::TemporaryDirectory directory;
    const auto path = directory.path() / "x";
    for (const std::string text : {"", "hello", "{\"a\": 1}", "\n\x05hello", "a b c"}) {
        test::write_text(path, text);
        EXPECT_NE(error_of([&] { Tokenizer::load(path); }).find(path.string()), std::string::npos);
    }
    EXPECT_NE(error_of([&] { Tokenizer::load(directory.path()); }).find("found neither"),
              std::string::npos);
    EXPECT_NE(error_of([&] { Tokenizer::load("/none/such"); }).find("cannot open"),
              std::string::npos);
}

TEST(Tokenizer, BytesAloneAreAVocabulary) {
    const test::TemporaryDirectory directory;
    BpeTrainer trainer;
    trainer.add("text");
    write_hugging_face(trainer.train(256), directory.path());
    const auto tokenizer = Tokenizer::load(directory.path());
    EXPECT_EQ(tokenizer->vocab_size(), 257);
    EXPECT_EQ(tokenizer->end_of_text(), 256);
    EXPECT_EQ(encode(*tokenizer, "!a"), (std::vector<int32_t>{0, 64}));  // as GPT-2 numbers bytes
    EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, kText)), kText);
}

TEST(Tokenizer, TheFilesOfATrainedVocabularyAgree) {
    BpeTrainer trainer;
    trainer.add(test::read_text(test::source_dir() / "README.md"));
    const BpeVocabulary vocabulary = trainer.train(700);
    EXPECT_EQ(vocabulary.tokens.size(), 700u);
    const test::TemporaryDirectory directory;
    write_hugging_face(vocabulary, directory.path());
    const auto whole = Tokenizer::load(directory.path());
    EXPECT_EQ(whole->vocab_size(), 701);
    EXPECT_EQ(whole->end_of_text(), 700);
    std::filesystem::remove(directory.path() / "tokenizer.json");
    const auto older = Tokenizer::load(directory.path());
    EXPECT_EQ(older->end_of_text(), 700);
    EXPECT_EQ(encode(*older, kText), encode(*whole, kText));
    EXPECT_LT(encode(*whole, kText).size(), kText.size() * 2 / 3);
}
