// Mixtures of experts as GGUF files: the golden tiny models, read back.
#include <gtest/gtest.h>

#include "core/error.h"
#include "formats/gguf.h"
#include "gpt/families/model_file.h"
#include "gpt/family_models.h"
#include "hub/convert.h"
#include "support/error_of.h"
#include "support/family_folder.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class GgufExperts : public testing::Test {
  protected:
    // The golden model, with settings that GGUF can say and rows for the tokenizer.
    fs::path folder(const std::string& name, const json& settings) {
        json config = gpt::family_config(name);
        config["vocab_size"] = 512;
        config.update(settings);
        const fs::path path = directory_.path() / "folder";
        fs::remove_all(path);
        test::write_tiny_model(path, config.dump(), "qwen2");
        return path;
    }
    fs::path written(const fs::path& from, const std::string& type) {
        const fs::path path = directory_.path() / (type + ".gguf");
        fs::remove(path);
        convert_model(from, path, {"", type, ""}, [](const std::string&) { FAIL(); });
        return path;
    }
    std::vector<float> logits(const fs::path& path, const char* dtype = "f32") {
        std::vector<int32_t> ids;
        for (int32_t i = 0; i < 40; ++i) ids.push_back(i * 37 % 512);
        return gpt::logits_of(gpt::load_model(path, precision_of(dtype)), ids);
    }
    test::TemporaryDirectory directory_;
};

TEST_F(GgufExperts, FilesInF32AreTheModel) {
    for (const auto& [name, settings] :
         {std::pair{"mixtral", json::object()}, {"qwen3_moe", json::object()}}) {
        const fs::path from = folder(name, settings);
        EXPECT_EQ(logits(written(from, "f32")), logits(from)) << name;
    }
}

// Experts are rounded as other matrices, one by one; the router is not.
TEST_F(GgufExperts, OtherTypesAreWithinTheirRounding) {
    const fs::path from = folder("qwen3_moe", {{"hidden_size", 256}, {"num_hidden_layers", 2}});
    const std::vector<float> expected = logits(from);
    for (const auto& [type, most] : {std::pair{"f16", 1e-3}, {"q8_0", 2e-2}, {"q4_k_m", 0.2}}) {
        const fs::path path = written(from, type);
        const GgufFile file(path);
        EXPECT_EQ(file.tensors().at("blk.1.ffn_gate_inp.weight").dtype, Dtype::f32);
        const std::vector<float> found = logits(path);
        double squares = 0, errors = 0;
        for (size_t i = 0; i < found.size(); ++i) {
            squares += double{expected[i]} * expected[i];
            errors += (double{found[i]} - expected[i]) * (double{found[i]} - expected[i]);
        }
        EXPECT_LT(std::sqrt(errors / squares), most) << type;
    }
    // Eight experts; rows of 32 are no block of q4_k.
    const GgufFile file(directory_.path() / "q4_k_m.gguf");
    EXPECT_EQ(file.tensors().at("blk.0.attn_k.weight").dtype, Dtype::q8_0);
    EXPECT_EQ(file.tensors().at("blk.0.ffn_gate_exps.weight").dtype, Dtype::q4_k);
    EXPECT_EQ(file.tensors().at("blk.0.ffn_down_exps.weight").dtype, Dtype::q5_0);
}

TEST_F(GgufExperts, WhatIsNotWrittenIsNamed) {
    const auto why = [&](const char* name, const json& settings) {
        const fs::path from = folder(name, settings);
        return test::error_of([&] { written(from, "q8_0"); });
    };
    EXPECT_NE(
        why("mixtral, window", json::object()).find("GGUF cannot say that layer 0 has a window"),
        std::string::npos);
    EXPECT_NE(why("qwen3_moe, dense layers", {{"use_sliding_window", false}})
                  .find("GGUF cannot say that layer 0 has no experts"),
              std::string::npos);
    EXPECT_NE(why("qwen3_moe", {{"norm_topk_prob", false}}).find("another sum than 1"),
              std::string::npos);
    EXPECT_NE(why("qwen3_moe", {{"attention_bias", true}}).find("no place for biases"),
              std::string::npos);
    EXPECT_NE(why("mixtral", {{"hidden_act", "gelu"}}).find("no place for this hidden_act"),
              std::string::npos);
    EXPECT_FALSE(fs::exists(directory_.path() / "q8_0.gguf"));
}

}  // namespace
}  // namespace hark::models
