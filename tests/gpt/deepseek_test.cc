// DeepSeek's models: their files, what is refused, what the cache keeps. tests/gpt/families_test.cc
// compares them with transformers.
#include <gtest/gtest.h>

#include "core/json/json.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"
#include "gpt/engine/sequence.h"
#include "gpt/families/model_file.h"
#include "gpt/family_models.h"
#include "gpt/train/parameters.h"
#include "support/error_of.h"
#include "support/family_folder.h"
#include "support/family_weights.h"
#include "support/golden.h"
#include "support/ops.h"

namespace hark::gpt {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const std::vector<int32_t> kDeepseekIds = {5,  9, 10, 7, 8, 1, 50, 3,  44, 2,
                                           17, 5, 6,  7, 8, 9, 10, 11, 12};

std::vector<int32_t> greedy_of(const Model& model, int64_t n) {
    Context ctx = make_cpu_context(2);
    const auto stream =
        make_host_decode_stream(ctx, model, model.config.n_vocab, {.temperature = 0});
    stream->begin(std::span(kDeepseekIds).first(8), 0, n);
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < n; ++i) tokens.push_back(stream->next().token);
    return tokens;
}

// --- GGUF: tests/golden/deepseek_gguf.py -------------------------------------------------------

fs::path gguf_folder() { return test::source_dir() / "tests/golden/model_files/deepseek"; }

struct GgufTwin {
    const char *file, *config;
};

class DeepseekInGguf : public testing::TestWithParam<GgufTwin> {};

TEST_P(DeepseekInGguf, IsTheModelInHuggingFacesForm) {
    const auto& [file, config] = GetParam();
    const std::string settings = test::read_text(gguf_folder() / config);
    test::FamilyWeights weights(false);
    // In f16, which the file's matrices have, and the formula's become.
    const Precision precision = precision_of("f16");
    const Model in_gguf = load_model(gguf_folder() / file, precision);
    const Model expected = read_model(weights, parse_config(settings, config), precision);
    EXPECT_EQ(in_gguf.config.family, expected.config.family);
    EXPECT_EQ(in_gguf.config.eos_token_ids, expected.config.eos_token_ids);
    test::expect_near(logits_of(in_gguf, kDeepseekIds), logits_of(expected, kDeepseekIds), 2e-5);
    EXPECT_EQ(greedy_of(in_gguf, 100), greedy_of(expected, 100));
}

// The heads' matrices stay in the file where it has them head by head.
TEST_P(DeepseekInGguf, UsesTheFile) {
    const std::shared_ptr<ModelFile> file = open_model(gguf_folder() / GetParam().file);
    const Model model = read_model(file, precision_of("auto"));
    const auto& attention = std::get<LatentAttention>(model.layers[1].attention);
    for (const Matrix& one : attention.value) EXPECT_TRUE(file->tensors().is_mapped(one.values));
    for (const Matrix& one : attention.key)
        EXPECT_EQ(file->tensors().is_mapped(one.values), model.config.latent.by_head);
}

INSTANTIATE_TEST_SUITE_P(All, DeepseekInGguf,
                         testing::Values(GgufTwin{"v2-older.gguf", "v2.json"},
                                         GgufTwin{"v2.gguf", "v2.json"},
                                         GgufTwin{"v3.gguf", "v3.json"}),
                         [](const auto& info) {
                             std::string name = info.param.file;
                             std::erase_if(name, [](char c) { return !std::isalnum(c); });
                             return name;
                         });

// --- folders -------------------------------------------------------------------------------------

TEST(Deepseek, Folders) {
    test::TemporaryDirectory folder;
    for (const char* name : {"deepseek_v2, lite", "deepseek_v2, groups", "deepseek_v3"}) {
        json settings = family_config(name);
        settings["vocab_size"] = 512;
        const fs::path path = folder.path() / name;
        test::write_tiny_model(path, settings.dump(), "qwen2");
        const DecoderConfig config = parse_config(settings.dump(), "C");
        EXPECT_EQ(open_model(path)->config().family, config.family);
        test::FamilyWeights weights(false);
        const std::vector<float> exact =
            logits_of(load_model(path, precision_of("f32")), kDeepseekIds);
        for (const char* dtype : {"auto", "f32", "f16", "bf16", "int8"}) {
            const std::vector<float> found =
                logits_of(load_model(path, precision_of(dtype)), kDeepseekIds);
            EXPECT_EQ(found,
                      logits_of(read_model(weights, config, precision_of(dtype)), kDeepseekIds));
            const bool has_32_bits = dtype == std::string("auto") || dtype == std::string("f32");
            EXPECT_EQ(found == exact, has_32_bits) << name << ", " << dtype;
        }
    }
}

// A row per token and layer, of both kinds of channels; in blocks of 32 tokens.
TEST(Deepseek, TheCacheKeepsLatentRows) {
    const DecoderConfig config = parse_config(family_config("deepseek_v3").dump(), "C");
    EXPECT_EQ(config.cache_width(), 24 + 12);
    test::FamilyWeights weights(false);
    for (const auto& [dtype, bytes] : {std::pair{"f32", 4}, {"f16", 2}}) {
        const Model model = read_model(weights, config, precision_of(dtype));
        Context ctx = make_cpu_context(1);
        Sequence sequence(ctx, model);
        sequence.forward_to_host(ctx, kDeepseekIds);
        EXPECT_EQ(sequence.cache().bytes(), config.n_layer * 32 * (24 + 12) * bytes);
    }
}

// --- what is refused -----------------------------------------------------------------------------

TEST(Deepseek, SettingsThatAreNotReadAreNamed) {
    const auto refusal = [](const char* name, const char* key, const json& value) {
        json settings = family_config(name);
        settings[key] = value;
        return test::error_of([&] { parse_config(settings.dump(), "C"); });
    };
    const char *v2 = "deepseek_v2, groups", *v3 = "deepseek_v3";
    for (const char* name : {v2, v3}) {
        EXPECT_EQ(refusal(name, "attention_bias", true),
                  "C: 'attention_bias': expected false, the only supported value");
        EXPECT_EQ(refusal(name, "rope_interleave", false),
                  "C: 'rope_interleave': expected true, the only supported value");
        EXPECT_NE(refusal(name, "moe_layer_freq", 2).find("'moe_layer_freq'"), std::string::npos);
        EXPECT_EQ(refusal(name, "num_key_value_heads", 2),
                  "C: 'num_key_value_heads': expected 4, as many as heads, found 2");
        EXPECT_EQ(refusal(name, "n_group", 5),
                  "C: expected groups of equally many of the 12 experts, found 5");
        EXPECT_EQ(refusal(name, "topk_group", 1),
                  "C: expected 1 groups of 3 experts to have the 4 of a token");
        EXPECT_NE(refusal(name, "topk_group", 5).find("'topk_group'"), std::string::npos);
        EXPECT_NE(refusal(name, "routed_scaling_factor", 0).find("found 0"), std::string::npos);
        EXPECT_NE(refusal(name, "kv_lora_rank", 0).find("'kv_lora_rank'"), std::string::npos);
    }
    EXPECT_EQ(refusal(v2, "norm_topk_prob", true),
              "C: 'norm_topk_prob': expected false, the only supported value");
    EXPECT_EQ(refusal(v2, "scoring_func", "sigmoid"),
              "C: 'scoring_func': expected softmax, found sigmoid");
    EXPECT_EQ(refusal(v2, "topk_method", "noaux_tc"),
              "C: 'topk_method': expected group_limited_greedy, found noaux_tc");
    EXPECT_EQ(refusal(v3, "topk_method", "greedy"),
              "C: 'topk_method': expected noaux_tc, found greedy");
    json settings = family_config(v3);
    settings.erase("norm_topk_prob");
    EXPECT_EQ(test::error_of([&] { parse_config(settings.dump(), "C"); }),
              "C: expected 'norm_topk_prob', found none");
}

TEST(Deepseek, TrainingIsRefused) {
    const DecoderConfig config = parse_config(family_config("deepseek_v3").dump(), "C");
    EXPECT_EQ(test::error_of([&] { ParameterLayout layout(config); }),
              "training: latent attention of family 'deepseek_v3' cannot be trained yet");
}

}  // namespace
}  // namespace hark::gpt
