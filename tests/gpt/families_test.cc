// Tiny models of every family against transformers in float32: tests/golden/families.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "core/error.h"
#include "core/json/json.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"
#include "gpt/engine/sequence.h"
#include "gpt/families/family.h"
#include "gpt/families/model_file.h"
#include "gpt/families/tensor_spec.h"
#include "support/family_gguf.h"
#include "support/family_weights.h"
#include "support/golden.h"
#include "support/ops.h"
#include "support/process.h"

namespace hark::gpt {
namespace {

using nlohmann::json;
using test::GgufCase;

const json& cases() {
    static const json read = test::golden("families.json");
    return read;
}

std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto& [name, of] : cases().items()) all.push_back(name);
    return all;
}

// The model from weights in the form that Hugging Face's files have.
Model read_family(test::FamilyWeights& weights, const DecoderConfig& config,
                  const std::string& dtype = "f32") {
    const Family& family = family_of(config.family, "family");
    if (!family.unpack) return read_model(weights, config, precision_of(dtype));
    return read_model(*family.unpack(weights, config), config, precision_of(dtype));
}

class Families : public testing::TestWithParam<std::string> {
  protected:
    const json& golden() const { return cases()[GetParam()]; }
    Model model(const std::string& dtype = "f32") const {
        const DecoderConfig config = parse_config(golden()["config"].dump(), GetParam());
        test::FamilyWeights weights(config.family.starts_with("gemma"),
                                    GetParam().find("mxfp4") != std::string::npos);
        return read_family(weights, config, dtype);
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

// A prompt in pieces, and one that continues where a longrope's table changes.
TEST_P(Families, PiecesOfAPromptAreThePrompt) {
    const Model of = model();
    Context ctx = make_cpu_context(2);
    const std::vector<int32_t> ids = tokens();
    Sequence pieces(ctx, of, {.prefill_rows = 10}), whole(ctx, of);
    expect_near(pieces.forward_to_host(ctx, ids), 47, "pieces of 10");
    pieces.clear();
    pieces.forward_to_host(ctx, std::span(ids).first(29));
    expect_near(pieces.forward_to_host(ctx, std::span(ids).subspan(29)), 47, "29 and 19");
    whole.forward_to_host(ctx, std::span(ids).first(32));
    expect_near(whole.forward_to_host(ctx, std::span(ids).subspan(32)), 47, "32 and 16");
}

// The tokens that are kept of another text, and the rest of the prompt.
TEST_P(Families, AKeptBeginningIsPartOfThePrompt) {
    const Model of = model();
    Context ctx = make_cpu_context(2);
    const std::vector<int32_t> ids = tokens();
    for (const int64_t n : {1, 20, 47}) {
        Sequence sequence(ctx, of);
        std::vector<int32_t> other(ids.begin(), ids.begin() + n);
        other.insert(other.end(), ids.rbegin(), ids.rend());
        sequence.forward_to_host(ctx, other);
        const int64_t kept = sequence.keep_beginning_of(ids);
        EXPECT_TRUE(kept == 0 ? of.config.family != "llama" : kept >= n) << kept;
        expect_near(sequence.forward_to_host(ctx, std::span(ids).subspan(kept)), 47, "kept");
    }
}

TEST_P(Families, GreedyTokensEqualTransformers) {
    const Model of = model();
    Context ctx = make_cpu_context(2);
    const std::vector<int32_t> ids = tokens(), expected = golden()["greedy"];
    const std::vector<size_t> near = golden()["near"];
    const auto stream = make_host_decode_stream(ctx, of, of.config.n_vocab, {.temperature = 0});
    stream->begin(std::span(ids).first(8), 0, std::ssize(expected));
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

// --- GGUF ----------------------------------------------------------------------------------------

class FamiliesInGguf : public testing::TestWithParam<GgufCase> {};

// The logits of the model in GGUF are those of the same model in Hugging Face's form.
TEST_P(FamiliesInGguf, HaveTheSameLogits) {
    const GgufCase& of = GetParam();
    json settings = cases()[of.name]["config"];
    settings["rope_theta"] = 10000.0;
    if (!test::has_yarn(settings["model_type"].get<std::string>())) settings.erase("rope_scaling");
    if (of.is_gemma) settings["query_pre_attn_scalar"] = 32;  // what GGUF has no key for
    const DecoderConfig config = parse_config(settings.dump(), of.name);
    test::FamilyWeights weights(of.is_gemma, std::string(of.name).ends_with("mxfp4"));
    const Family& family = family_of(config.family, of.name);
    std::unique_ptr<TensorSource> unpacked;
    if (family.unpack) unpacked = family.unpack(weights, config);
    test::TemporaryDirectory folder;
    const std::filesystem::path path = folder.path() / "model.gguf";
    test::write_text(path, test::family_gguf(unpacked ? *unpacked : weights, of, config).bytes());
    const std::unique_ptr<ModelFile> file = open_model(path);
    const Model in_gguf = read_model(file->tensors(), file->config(), precision_of("f32"));
    const Model expected = read_family(weights, config);
    Context ctx = make_cpu_context(2);
    const std::vector<int32_t> ids = cases()[of.name]["tokens"];
    Sequence a(ctx, in_gguf), b(ctx, expected);
    const std::span<const float> found = a.forward_to_host(ctx, ids),
                                 wanted = b.forward_to_host(ctx, ids);
    EXPECT_EQ(std::vector<float>(found.begin(), found.end()),
              std::vector<float>(wanted.begin(), wanted.end()));
}

INSTANTIATE_TEST_SUITE_P(
    All, FamiliesInGguf,
    testing::Values(
        GgufCase{"llama", "llama", true, false},
        GgufCase{"llama, biases, odd heads, linear", "llama", true, false},
        GgufCase{"qwen2, tied", "qwen2", false, false}, GgufCase{"qwen3", "qwen3", false, false},
        GgufCase{"gemma2", "gemma2", false, true}, GgufCase{"olmo2", "olmo2", false, false},
        GgufCase{"olmo3, yarn, other layers", "olmo2", false, false},
        GgufCase{"mixtral", "llama", true, false}, GgufCase{"qwen3_moe", "qwen3moe", false, false},
        GgufCase{"gpt_oss", "gpt-oss", false, false},
        GgufCase{"gpt_oss, mxfp4", "gpt-oss", false, false}),
    [](const auto& info) {
        std::string name = info.param.name;
        std::erase_if(name, [](char c) { return !std::isalnum(c); });
        return name;
    });

TEST(FamilyConfig, ExpertsOfATokenAreAmongTheExperts) {
    json settings = cases()["mixtral"]["config"];
    EXPECT_EQ(parse_config(settings.dump(), "C").experts.per_token, 2);
    settings["num_experts_per_tok"] = 5;
    try {
        parse_config(settings.dump(), "config.json");
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "config.json: 'num_experts_per_tok': expected a whole number from 1 to 4, "
                     "found 5");
    }
}

TEST(FamilyConfig, SomeLayersOfQwen3HaveNoExperts) {
    const DecoderConfig config =
        parse_config(cases()["qwen3_moe, dense layers"]["config"].dump(), "C");
    std::vector<bool> found;
    for (const LayerConfig& layer : config.layers) found.push_back(layer.has_experts);
    EXPECT_EQ(found, (std::vector<bool>{false, true, false, false, false, true}));
}

// Three layers of four have a window, and the rope without scaling.
TEST(FamilyConfig, Olmo3WithoutTheKeysIsAsInTransformers) {
    json settings = cases()["olmo3, yarn, other layers"]["config"];
    settings["num_hidden_layers"] = 5;
    for (const char* key : {"layer_types", "sliding_window", "rms_norm_eps"}) settings.erase(key);
    const DecoderConfig config = parse_config(settings.dump(), "C");
    std::vector<int64_t> windows;
    for (const LayerConfig& layer : config.layers) {
        windows.push_back(layer.window);
        EXPECT_EQ(layer.rope, layer.window > 0 ? 1 : 0);
    }
    EXPECT_EQ(windows, (std::vector<int64_t>{4096, 4096, 4096, 0, 4096}));
    EXPECT_EQ(config.norm_eps, 1e-5f);
    settings.erase("rope_scaling");
    const DecoderConfig plain = parse_config(settings.dump(), "C");
    EXPECT_EQ(config.ropes[1], plain.ropes[0]);
    EXPECT_NE(config.ropes[0], plain.ropes[0]);
}

// Older files of Phi-3 name longrope otherwise; its original length is at the top.
TEST(FamilyConfig, LongropeHasThreeNames) {
    json settings = cases()["phi3, longrope"]["config"];
    const DecoderConfig expected = parse_config(settings.dump(), "C");
    ASSERT_TRUE(expected.has_longrope());
    EXPECT_EQ(expected.ropes[0].original_length, 32);
    for (const char* name : {"su", "yarn"}) {
        settings["rope_scaling"]["type"] = name;
        EXPECT_EQ(parse_config(settings.dump(), "C").ropes, expected.ropes) << name;
    }
}

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
