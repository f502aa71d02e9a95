// HellaSwag's scores against transformers (tests/golden/hellaswag.py), and broken files.
#include "gpt/eval/hellaswag.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "core/json/json.h"
#include "gpt/train/training.h"
#include "kernels/runtime/backend.h"
#include "support/audio.h"
#include "support/golden.h"
#include "support/process.h"

using namespace hark;
using namespace hark::gpt;

namespace {

constexpr int kExamples = 100, kVocabulary = 4096;

// The golden script's formula; k = 4: of the context.
int64_t token(int64_t i, int64_t k, int64_t j) {
    return (977 * (5 * i + k + 1) * (j + 3) + 13 * i + j * j) % kVocabulary;
}

std::string header(int32_t examples) {
    std::string bytes(1024, '\0');
    const int32_t fields[4] = {20240522, 1, examples, 0};
    std::memcpy(bytes.data(), fields, sizeof fields);
    return bytes;
}

std::string stream_of(const std::vector<int64_t>& numbers) {
    std::string bytes;
    for (const int64_t number : numbers)
        bytes += test::little_endian(static_cast<uint64_t>(number), 2);
    return bytes;
}

std::string formula_file(int32_t examples) {
    std::string bytes = header(examples);
    for (int64_t i = 0; i < examples; ++i) {
        std::vector<int64_t> one = {65535, 0, i, (i * i + i / 3) % 4, 4, 1 + i % 23};
        for (int64_t j = 0; j < 1 + i % 23; ++j) one.push_back(token(i, 4, j));
        for (int64_t k = 0; k < 4; ++k) {
            const int64_t n = 1 + (7 * i + 3 * k) % 17;
            one.push_back(n);
            for (int64_t j = 0; j < n; ++j) one.push_back(token(i, k, j));
        }
        one[1] = 2 * std::ssize(one);
        bytes += stream_of(one);
    }
    return bytes;
}

// One example: the context 7 8, completions of one and two tokens.
const std::vector<int64_t> kSmall = {65535, 34, 0, 2, 4, 2, 7, 8, 1, 3, 2, 4, 5, 1, 6, 1, 9};

std::string small_with(size_t at, int64_t value) {
    std::vector<int64_t> numbers = kSmall;
    numbers[at] = value;
    return header(1) + stream_of(numbers);
}

void expect_refused(const std::string& bytes, const std::string& part) {
    try {
        HellaSwag tasks(bytes, "x.bin", 10, 3);
        ADD_FAILURE() << "accepted; expected: " << part;
    } catch (const Error& error) {
        const std::string message = error.what();
        EXPECT_TRUE(message.starts_with("x.bin: ")) << message;
        EXPECT_NE(message.find(part), std::string::npos) << message;
    }
}

}  // namespace

TEST(HellaSwag, ScoresAreTheReferences) {
    const auto golden = test::golden("hellaswag.json");
    const std::filesystem::path demo = test::source_dir() / "models/gpt-demo";
    const DecoderConfig config = load_config(demo);
    const ParameterLayout layout(config);
    std::vector<float> values(static_cast<size_t>(layout.size()));
    const Tensor all(values.data(), Dtype::f32, {layout.size()});
    SafetensorsDirectory source(demo, "transformer.");
    layout.read(all, source);
    Context ctx(2);
    Communicator one;

    const RowLosses losses_of = [&](PackedRows& rows) {
        return row_losses(ctx, one, config, layout.views(all), rows);
    };
    const HellaSwag tasks(formula_file(kExamples), "formula", config.n_vocab, config.n_positions);
    const auto losses = tasks.losses(1024, losses_of);
    const std::vector<std::vector<double>> expected = golden["losses"];
    ASSERT_EQ(losses.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
        for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(losses[i][k], expected[i][k], 5e-5) << i;
    EXPECT_EQ(tasks.accuracy(losses), golden["right"].get<double>() / kExamples);
    // One at a time, as if a batch has few rows.
    const HellaSwag first(formula_file(6), "formula", config.n_vocab, config.n_positions);
    const auto alone = first.losses(1, losses_of);
    ASSERT_EQ(alone.size(), 6u);
    for (size_t i = 0; i < alone.size(); ++i)
        for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(alone[i][k], losses[i][k], 2e-5) << i;
}

TEST(HellaSwag, TheFirstOfTheLeastIsTheAnswer) {
    const HellaSwag tasks(header(2) + stream_of(kSmall) + stream_of(kSmall), "x", 10, 3);
    EXPECT_EQ(tasks.accuracy({{3, 2, 1, 1}, {3, 1, 1, 2}}), 0.5);
    EXPECT_EQ(tasks.accuracy({{3, 2, 1, 1}, {3, 1, 0, 2}}), 1);
}

TEST(HellaSwag, AFileSaysWhatItHolds) {
    const HellaSwag tasks(header(1) + stream_of(kSmall), "x", 10, 3);
    ASSERT_EQ(tasks.examples().size(), 1u);
    const ChoiceQuestion& example = tasks.examples()[0];
    EXPECT_EQ(example.label, 2);
    EXPECT_EQ(example.context, (std::vector<int32_t>{7, 8}));
    EXPECT_EQ(example.choices, (std::vector<std::vector<int32_t>>{{3}, {4, 5}, {6}, {9}}));
    EXPECT_EQ(example.rows(), 2 + 3 + 2 + 2);
    EXPECT_EQ(example.longest(), 3);
}

TEST(HellaSwag, BrokenFilesAreNamed) {
    const std::string good = header(1) + stream_of(kSmall);
    expect_refused(good.substr(0, 1023), "found 1023 bytes in all");
    expect_refused("x" + good.substr(1), "which begins with 20240522, found");
    expect_refused(good.substr(0, 4) + "\x02" + good.substr(5), "expected version 1");
    expect_refused(header(0), "expected 1 example or more, found 0");
    expect_refused(header(-1), "expected 1 example or more, found -1");
    for (size_t left = 1024; left < good.size(); ++left)
        expect_refused(good.substr(0, left), "found the file's end");
    expect_refused(good + "ab", "its header counts 1 examples, which end after 1058 bytes");
    expect_refused(header(2) + good.substr(1024), "example 1: expected the number that begins");
    expect_refused(small_with(0, 65534), "begins an example: expected 65535, found 65534");
    expect_refused(small_with(1, 36), "its contents take 34 bytes, but it says 36");
    expect_refused(small_with(3, 4), "its label: expected 0 to 3, found 4");
    expect_refused(small_with(4, 3), "its completions: expected 4, found 3");
    expect_refused(small_with(5, 0), "its context's tokens: expected 1 to 65535, found 0");
    expect_refused(small_with(8, 0), "a completion's tokens: expected 1 to 65535, found 0");
    expect_refused(small_with(7, 10), "the id 10 is over the vocabulary of 10");
    std::vector<int64_t> longer = kSmall;
    longer.back() = 9;
    longer.insert(longer.end() - 1, 9);
    longer[longer.size() - 3] = 2;
    longer.insert(longer.begin() + 6, 1);
    longer[5] = 3;
    longer[1] = 2 * std::ssize(longer);
    expect_refused(header(1) + stream_of(longer), "for 3 positions, the model's, found 4");
}
