// Models with mixtures of experts from their files.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json/json.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/sequence.h"
#include "gpt/families/family.h"
#include "gpt/families/model_file.h"
#include "gpt/family_models.h"
#include "support/error_of.h"
#include "support/family_folder.h"
#include "support/golden.h"
#include "support/gpt_oss_folder.h"
#include "support/ops.h"

namespace hark::gpt {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const std::vector<int32_t> kIds = {5, 9, 100, 7, 8, 1, 90, 3, 44, 2, 17, 5, 6, 7, 8, 9, 10, 11, 12};

TEST(ExpertModels, FoldersOfGptOss) {
    test::TemporaryDirectory folder;
    for (const bool has_blocks : {true, false}) {
        const json settings = family_config(has_blocks ? "gpt_oss, mxfp4" : "gpt_oss");
        test::write_gpt_oss(folder.path(), settings, has_blocks);
        const DecoderConfig config = parse_config(settings.dump(), "C");
        test::FamilyWeights weights(false, has_blocks);
        const auto unpacked = family_of("gpt_oss", "C").unpack(weights, config);
        const Precision precision = precision_of("f32");
        EXPECT_EQ(logits_of(load_model(folder.path(), precision), kIds),
                  logits_of(read_model(*unpacked, config, precision), kIds));
        // Blocks stay as they are where --dtype is auto; rows of x then have 16 bits.
        const Model kept = load_model(folder.path(), precision_of("auto"));
        const auto& experts = std::get<Experts>(kept.layers[0].mlp);
        const std::vector<float> found = logits_of(kept, kIds);
        test::expect_near(found, logits_of(load_model(folder.path(), precision), kIds), 5e-4);
        EXPECT_EQ(experts.gate.each[1].values.dtype, has_blocks ? Dtype::mxfp4 : Dtype::f32);
    }
}

// One by one and in one batch: a token's experts do not depend on others.
TEST(ExpertModels, FoldersOfMixtralAndQwen3) {
    test::TemporaryDirectory folder;
    for (const char* name : {"mixtral", "qwen3_moe, dense layers"}) {
        json settings = family_config(name);
        settings["vocab_size"] = 512;
        const fs::path path = folder.path() / settings["model_type"].get<std::string>();
        test::write_tiny_model(path, settings.dump().c_str(), "qwen2");
        const auto file = open_model(path);
        EXPECT_EQ(file->config().family, settings["model_type"].get<std::string>());
        const DecoderConfig config = parse_config(settings.dump(), "C");
        test::FamilyWeights weights(false);
        for (const char* dtype : {"auto", "f32", "f16", "int8"}) {
            const Precision precision = precision_of(dtype);
            EXPECT_EQ(logits_of(load_model(path, precision), kIds),
                      logits_of(read_model(weights, config, precision), kIds))
                << name << ", " << dtype;
        }
    }
}

// On the CPU experts stay in the file where their type does.
TEST(ExpertModels, AreUsedInPlace) {
    test::TemporaryDirectory folder;
    json settings = family_config("mixtral");
    settings["vocab_size"] = 512;
    test::write_tiny_model(folder.path() / "m", settings.dump().c_str(), "qwen2");
    const std::shared_ptr<ModelFile> file = open_model(folder.path() / "m");
    const Model model = read_model(file, precision_of("f32"));
    const auto& experts = std::get<Experts>(model.layers[1].mlp);
    for (const ExpertMatrices* matrices : {&experts.gate, &experts.up, &experts.down})
        for (const Matrix& one : matrices->each) EXPECT_TRUE(file->tensors().is_mapped(one.values));
}

TEST(ExpertModels, SettingsOutOfRangeAreNamed) {
    const auto refusal = [](const char* name, const char* key, const json& value) {
        json settings = family_config(name);
        settings[key] = value;
        return test::error_of([&] { parse_config(settings.dump(), "C"); });
    };
    json many = family_config("mixtral");
    many["num_hidden_layers"] = 1024;
    many["num_local_experts"] = 1024;
    EXPECT_EQ(test::error_of([&] { parse_config(many.dump(), "C"); }),
              "C: expected at most 65536 experts in all layers, found 1024 layers of 1024");
    EXPECT_EQ(refusal("gpt_oss", "swiglu_limit", 0),
              "C: 'swiglu_limit': expected a number above 0 and at most 1e6, found 0");
    EXPECT_NE(refusal("gpt_oss", "swiglu_limit", 1e300).find("swiglu_limit"), std::string::npos);
    EXPECT_NE(refusal("mixtral", "num_experts_per_tok", 1000).find("num_experts_per_tok"),
              std::string::npos);
}

TEST(ExpertModels, ATensorOfOtherExpertsIsNamed) {
    test::TemporaryDirectory folder;
    const json settings = family_config("gpt_oss, mxfp4");
    json fewer = settings;
    fewer["num_local_experts"] = 3;
    fewer["num_experts_per_tok"] = 2;
    test::write_gpt_oss(folder.path(), fewer, true);
    test::write_text(folder.path() / "config.json", settings.dump());
    const std::string error =
        test::error_of([&] { load_model(folder.path(), precision_of("auto")); });
    EXPECT_NE(error.find("tensor 'model.layers.0.mlp."), error.npos) << error;
    EXPECT_NE(error.find("found"), error.npos) << error;
}

}  // namespace
}  // namespace hark::gpt
