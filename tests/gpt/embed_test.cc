// How vectors are made of a model's outputs, as its files say, and which rows are close to them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/embed/embedder.h"
#include "gpt/embed/nearest.h"
#include "gpt/families/model_file.h"
#include "support/gguf_writer.h"
#include "support/process.h"

namespace hark::gpt {
namespace {

EmbeddingSettings gguf_settings(int type) {
    const test::TemporaryDirectory directory;
    const std::string path = (directory.path() / "model.gguf").string();
    test::GgufWriter file;
    file.text("general.architecture", "qwen3");
    if (type >= 0) file.u32("qwen3.pooling_type", static_cast<uint32_t>(type));
    test::write_text(path, file.bytes());
    return embedding_settings_of(GgufFile(path));
}

std::vector<std::vector<Match>> nearest(const std::vector<float>& rows,
                                        const std::vector<std::vector<float>>& vectors,
                                        int64_t matches) {
    const test::TemporaryDirectory directory;
    const std::string path = (directory.path() / "rows").string();
    test::write_text(
        path, std::string(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(float)));
    const int fd = ::open(path.c_str(), O_RDONLY);
    ByteReader in(fd, "rows");
    const auto found = nearest_rows(in, vectors, matches);
    ::close(fd);
    return found;
}

}  // namespace

TEST(Embed, GgufSaysThePooling) {
    EXPECT_EQ(gguf_settings(-1).pooling, Pooling::last_token);
    EXPECT_EQ(gguf_settings(0).pooling, Pooling::last_token);
    EXPECT_EQ(gguf_settings(1).pooling, Pooling::mean);
    EXPECT_EQ(gguf_settings(2).pooling, Pooling::first_token);
    EXPECT_EQ(gguf_settings(3).pooling, Pooling::last_token);
    EXPECT_THROW(gguf_settings(4), Error);
}

TEST(Embed, AFolderSaysHowLongATextMayBe) {
    const test::TemporaryDirectory directory;
    const auto path = directory.path() / "sentence_bert_config.json";
    EXPECT_EQ(read_embedding_settings(directory.path()).longest_of(64), 64);
    test::write_text(path, R"({"max_seq_length": 32})");
    EXPECT_EQ(read_embedding_settings(directory.path()).longest_of(64), 32);
    EXPECT_EQ(read_embedding_settings(directory.path()).longest_of(16), 16);
    test::write_text(path, R"({"max_seq_length": 0})");
    EXPECT_THROW(read_embedding_settings(directory.path()), Error);
}

// Passes that cut texts, and texts next to others, give the vectors of each text alone.
TEST(Embed, VectorsDoNotDependOnThePass) {
    const auto file = open_model(test::source_dir() / "models/gpt-demo");
    const Model model = read_model(file->tensors(), file->config(), precision_of("f32"));
    std::vector<std::vector<int32_t>> texts;
    for (int32_t i = 0; i < 9; ++i) {
        texts.emplace_back();
        for (int32_t j = 0; j < 1 + 7 * i; ++j) texts.back().push_back((37 * i + 11 * j) % 4096);
    }
    Context ctx(2);
    for (const Pooling pooling : {Pooling::last_token, Pooling::first_token, Pooling::mean}) {
        Embedder embed(ctx, model, {.pooling = pooling});
        const auto together = embed(texts);
        ASSERT_EQ(together.size(), texts.size());
        for (size_t i = 0; i < texts.size(); ++i) {
            const auto alone = embed({&texts[i], 1});
            for (size_t c = 0; c < alone[0].size(); ++c)
                ASSERT_NEAR(alone[0][c], together[i][c], 1e-6) << i;
        }
    }
}

TEST(Embed, TheNearestRows) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> rows = {1, 0, 0, 1, nan, 0, 2, 0, 1, 1, 0.5f, 0};
    const auto found = nearest(rows, {{1, 0}, {0, 1}}, 3);
    ASSERT_EQ(found.size(), 2u);
    const auto numbers = [](const std::vector<Match>& matches) {
        std::vector<int64_t> all;
        for (const Match& match : matches) all.push_back(match.row);
        return all;
    };
    EXPECT_EQ(numbers(found[0]), (std::vector<int64_t>{3, 0, 4}));
    EXPECT_EQ(numbers(found[1]), (std::vector<int64_t>{1, 4, 0}));
    EXPECT_EQ(found[0][0].score, 2);
    EXPECT_EQ(numbers(nearest(rows, {{1, 0}}, 100)[0]), (std::vector<int64_t>{3, 0, 4, 5, 1}));
    EXPECT_THROW(nearest({}, {{1, 0}}, 3), Error);
    EXPECT_THROW(nearest({1, 2, 3}, {{1, 0}}, 3), Error);
}

}  // namespace hark::gpt
