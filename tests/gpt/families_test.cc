// Tiny models of every family against transformers in float32: tests/golden/families.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "gpt/engine/decode_stream.h"
#include "support/family_weights.h"
#include "support/ops.h"
#include "support/process.h"

namespace hark::gpt {
namespace {

using nlohmann::json;

const json& cases() {
    static const json read =
        json::parse(test::read_text(test::source_dir() / "tests/golden/families.json"));
    return read;
}

std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto& [name, of] : cases().items()) all.push_back(name);
    return all;
}

class Families : public testing::TestWithParam<std::string> {
  protected:
    const json& golden() const { return cases()[GetParam()]; }
    Model model(const std::string& dtype = "f32") const {
        const DecoderConfig config = parse_config(golden()["config"].dump(), GetParam());
        test::FamilyWeights weights(config.family.starts_with("gemma"));
        return read_model(weights, config, precision_of(dtype));
    }
    std::vector<int32_t> tokens() const { return golden()["tokens"]; }
    void expect_near(std::span<const float> logits, size_t row, const char* how) const {
        const std::vector<float> expected = golden()["rows"][std::to_string(row)];
        float largest = 0;
        for (const float x : expected) largest = std::max(largest, std::abs(x));
        ASSERT_EQ(logits.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i)
            ASSERT_NEAR(logits[i], expected[i], 2e-5f * largest)
                << how << ", row " << row << ", token " << i;
    }
};

// The logits after each of the rows, from a prompt that ends there.
TEST_P(Families, LogitsEqualTransformers) {
    const Model of = model();
    Context ctx = make_cpu_context(2);
    const std::vector<int32_t> ids = tokens();
    Sequence sequence(ctx, of);
    for (const auto& [text, expected] : golden()["rows"].items()) {
        const size_t row = std::stoul(text);
        // longrope: a shorter prompt has another table than the golden file's prompt of 48 tokens.
        if (!of.config.ropes[0].long_frequencies.empty() && row + 1 < ids.size()) continue;
        sequence.clear();
        expect_near(sequence.forward_to_host(ctx, std::span(ids).first(row + 1)), row, "prompt");
        sequence.clear();
        for (size_t i = 0; i < row; ++i)
            sequence.forward_to_host(ctx, std::span(ids).subspan(i, 1));
        expect_near(sequence.forward_to_host(ctx, std::span(ids).subspan(row, 1)), row, "steps");
    }
}

TEST_P(Families, GreedyTokensEqualTransformers) {
    const Model of = model();
    Context ctx = make_cpu_context(2);
    const std::vector<int32_t> ids = tokens(), expected = golden()["greedy"];
    const std::vector<size_t> near = golden()["near"];
    const auto stream = make_host_decode_stream(ctx, of, of.config.n_vocab, {.temperature = 0});
    stream->begin(std::span(ids).first(8), Random(0), std::ssize(expected));
    for (size_t i = 0; i < expected.size(); ++i) {
        const int32_t token = stream->next().token;
        if (token == expected[i]) continue;
        ASSERT_NE(std::find(near.begin(), near.end(), i), near.end())
            << "step " << i << ": expected " << expected[i] << ", found " << token;
        break;  // the reference's two best logits are as good as equal; the rest may differ
    }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(names()), test_name);

TEST(FamilyConfig, AnUnknownOneIsNamedWithThoseThatAreRead) {
    try {
        parse_config(R"({"model_type": "mamba"})", "config.json");
        FAIL();
    } catch (const Error& error) {
        const std::string message = error.what();
        EXPECT_EQ(message.rfind("config.json: ", 0), 0u);
        for (const char* part : {"'mamba'", "llama", "qwen3", "gemma2"})
            EXPECT_NE(message.find(part), std::string::npos) << message;
    }
}

}  // namespace
}  // namespace hark::gpt
