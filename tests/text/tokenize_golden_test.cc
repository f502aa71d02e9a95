// A megabyte of mixed text against the tokenizers library and tiktoken, and what is learnt against
// the tokenizers library's BpeTrainer (tests/tokenize_golden/gpt_tokenize.py).
#include <gtest/gtest.h>

#include "core/json/json.h"
#include "support/fnv.h"
#include "support/generated_text.h"
#include "support/golden.h"
#include "support/process.h"
#include "text/bpe_encoder.h"
#include "text/byte_alphabet.h"
#include "text/split.h"
#include "text/tokens/bpe_trainer.h"
#include "text/tokens/encode_blocks.h"

using namespace hark;
using hark::test::source_dir;
using nlohmann::json;

namespace {

const json& tokenize_golden() {
    static const json kGolden = test::golden("gpt_tokenize.json");
    return kGolden;
}

std::string generated(const std::string& pieces, uint64_t seed, size_t size) {
    return test::generated_text(tokenize_golden()[pieces], seed, size);
}

const std::string& mixed_text() {
    static const std::string kText = generated("mixed", tokenize_golden()["seed"].get<uint64_t>(),
                                               tokenize_golden()["bytes"].get<size_t>());
    return kText;
}

void expect_golden(const std::vector<int32_t>& ids, const std::string& vocabulary) {
    const json& wanted = tokenize_golden()["ids"][vocabulary];
    ASSERT_EQ(test::fnv1a(mixed_text()), tokenize_golden()["text_hash"]) << "the generators differ";
    ASSERT_EQ(ids.size(), wanted["count"].get<size_t>()) << vocabulary;
    EXPECT_EQ(json(std::vector<int32_t>(ids.begin(), ids.begin() + 16)), wanted["first"]);
    EXPECT_EQ(test::fnv1a({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]}),
              wanted["hash"].get<std::string>())
        << vocabulary;
}

std::filesystem::path official_tiktoken(const std::string& name) {
    return source_dir() / "../shared/data" / (name + ".tiktoken");
}

// The ids of a text that comes block by block, encoded by several threads.
std::vector<int32_t> ids_in_blocks(const Tokenizer& tokenizer, const std::string& text,
                                   size_t block_bytes, int jobs) {
    test::TemporaryDirectory directory;
    const std::string path = directory.path() / "text";
    test::write_text(path, text);
    InputFile file(path);
    const DocumentOptions options;
    DocumentReader reader(
        file.bytes(), options, [&](std::string_view part) { return tokenizer.last_cut(part); },
        block_bytes);
    BlockEncoder blocks(tokenizer, {{}, "", jobs}, [&] { return reader.next(); });
    std::vector<int32_t> ids;
    size_t count = 0;
    while (const auto block = blocks.next()) {
        ids.insert(ids.end(), block->ids.begin(), block->ids.end());
        ++count;
    }
    EXPECT_GT(count, text.size() / block_bytes / 3);
    return ids;
}

}  // namespace

TEST(TokenizeGolden, MegabyteEqualsTheTokenizersLibrary) {
    for (const char* name : {"gpt-demo", "whisper-demo"})
        expect_golden(Bpe::from_directory(source_dir() / "models" / name).encode(mixed_text()),
                      name);
}

TEST(TokenizeGolden, MegabyteEqualsTiktoken) {
    if (!std::filesystem::exists(official_tiktoken("gpt2")))
        GTEST_SKIP() << "no ../shared/data/gpt2.tiktoken next to the source: it is not to commit";
    for (const char* name : {"gpt2", "multilingual"})
        expect_golden(Bpe::from_tiktoken(official_tiktoken(name)).encode(mixed_text()), name);
}

TEST(TokenizeGolden, BlocksAndThreadsDoNotChangeTheIds) {
    const auto tokenizer = Tokenizer::load(source_dir() / "models/gpt-demo");
    expect_golden(ids_in_blocks(*tokenizer, mixed_text(), 1 << 20, 1), "gpt-demo");
    expect_golden(ids_in_blocks(*tokenizer, mixed_text(), 1000, 4), "gpt-demo");
    expect_golden(ids_in_blocks(*tokenizer, mixed_text(), 61, 3), "gpt-demo");
}

TEST(TokenizeGolden, TrainingEqualsTheTokenizersLibrary) {
    for (const json& test_case : tokenize_golden()["training"]) {
        const json& wanted = test_case["result"];
        const std::string text =
            generated(test_case["pieces"].get<std::string>(), test_case["seed"].get<uint64_t>(),
                      test_case["bytes"].get<size_t>());
        BpeTrainer trainer;
        const size_t cut = last_word_cut(std::string_view(text).substr(0, text.size() / 2));
        trainer.add(text.substr(0, cut));
        trainer.add(text.substr(cut));
        const BpeVocabulary found = trainer.train(test_case["vocab"].get<int32_t>());
        EXPECT_EQ(found.tokens.size(), wanted["tokens"].get<size_t>());
        std::string merges;
        json first = json::array();
        for (const auto& [left, right] : found.merges) {
            const std::string line =
                spell_bytes(found.tokens[left]) + " " + spell_bytes(found.tokens[right]);
            if (first.size() < 8) first.push_back(line);
            merges += line + "\n";
        }
        EXPECT_EQ(found.merges.size(), wanted["merges"].get<size_t>());
        EXPECT_EQ(first, wanted["first"]);
        EXPECT_EQ(test::fnv1a(merges), wanted["hash"].get<std::string>());
    }
}
